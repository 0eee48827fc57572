/* Samples of the GPUs that the process uses, by NVML: how busy, how much memory, which clocks, how hot, what slows them down. */
#ifndef OPSCOPE_COLLECT_NVML_H
#define OPSCOPE_COLLECT_NVML_H

/* When CUDA is being initialised: from then on nvml_tick has something to ask. */
void nvml_start(void);
/* From now on it has not. */
void nvml_end(void);
/* Once a second in the library's own thread: a sample of each device. */
void nvml_tick(void);

#endif
