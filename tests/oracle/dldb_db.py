"""Makes databases laid out as DLProf 1.8 lays them out, with the columns that opscope reads and some that it does not."""
import sqlite3

TABLES = {
    "dictionary": "id INTEGER PRIMARY KEY, string TEXT NOT NULL UNIQUE",
    "db_version": "id INTEGER PRIMARY KEY, current_version TEXT, original_version TEXT",
    "read_only_domains": "id INTEGER PRIMARY KEY, domain_name_id INTEGER",
    "read_only_model_info": "id INTEGER PRIMARY KEY, domain_id INTEGER, domain_name STRING, profile_name STRING",
    "read_only_gpu_infos": "id INTEGER PRIMARY KEY, device_id INTEGER, gpu_name TEXT, compute_capability_major INTEGER, "
                           "compute_capability_minor INTEGER, sm_count INTEGER",
    "read_only_system_config": "id INTEGER PRIMARY KEY, num_gpus TEXT, cpu_model TEXT, driver_version TEXT, framework TEXT, cuda_version TEXT, "
                               "cudnn_version TEXT, nsys_version TEXT, dlprof_version TEXT, original_command TEXT",
    "read_only_grid_block": "id INTEGER PRIMARY KEY, x INTEGER, y INTEGER, z INTEGER",
    "read_only_ops": "id INTEGER PRIMARY KEY, domain_id INTEGER, op_id STRING, op_name STRING, op_type_id INTEGER, tc_support_status INTEGER, "
                     "data_type_id INTEGER, direction_id INTEGER, stack_trace STRING",
    "read_only_op_instances": "id INTEGER PRIMARY KEY, read_only_ops_id INTEGER, cpu_start INTEGER, cpu_stop INTEGER, process_id INTEGER, "
                              "thread_id INTEGER, input_shapes_id INTEGER, output_shapes_id INTEGER, parameters_id INTEGER",
    "read_only_kernels": "id INTEGER PRIMARY KEY, read_only_ops_id INTEGER, op_instance INTEGER, name_id INTEGER, long_name_id INTEGER, "
                         "uses_tc BOOLEAN, api_start INTEGER, api_stop INTEGER, gpu_start INTEGER, gpu_stop INTEGER, grid_id INTEGER, "
                         "block_id INTEGER, device_id INTEGER, process_id INTEGER, thread_id INTEGER",
    "read_only_memcpys": "id INTEGER PRIMARY KEY, read_only_ops_id INTEGER, op_instance INTEGER, name_id INTEGER, api_start INTEGER, "
                         "api_stop INTEGER, gpu_start INTEGER, gpu_stop INTEGER, num_bytes INTEGER, copy_kind INTEGER, device_id INTEGER, "
                         "process_id INTEGER, thread_id INTEGER",
    "read_only_memsets": "id INTEGER PRIMARY KEY, read_only_ops_id INTEGER, op_instance INTEGER, name_id INTEGER, api_start INTEGER, "
                         "api_stop INTEGER, gpu_start INTEGER, gpu_stop INTEGER, num_bytes INTEGER, device_id INTEGER, process_id INTEGER, "
                         "thread_id INTEGER",
    "read_only_cuda_calls": "id INTEGER PRIMARY KEY, read_only_ops_id INTEGER, op_instance INTEGER, name_id INTEGER, api_start INTEGER, "
                            "api_stop INTEGER, process_id INTEGER, thread_id INTEGER",
    "read_only_cuda_syncs": "id INTEGER PRIMARY KEY, read_only_ops_id INTEGER, op_instance INTEGER, name_id INTEGER, api_start INTEGER, "
                            "api_stop INTEGER, process_id INTEGER, thread_id INTEGER",
    "aggregations": "id INTEGER PRIMARY KEY, server_user_name TEXT, server_host_name TEXT, start_timestamp INTEGER, end_timestamp INTEGER",
    "iteration_key": "id INTEGER PRIMARY KEY, aggr_id INTEGER, key_node_id INTEGER",
    "expert_systems_feedback": "id INTEGER PRIMARY KEY, aggr_id INTEGER, exp_sys_id TEXT, problem TEXT, recommendation TEXT",
    "model_summary": "id INTEGER PRIMARY KEY, aggr_id INTEGER, domain_id INTEGER, wall_time INTEGER, gpu_utilization REAL, tc_utilization REAL, "
                     "cpu_duration_pct REAL, avg_iteration_time REAL, iteration_time_std_dev REAL, iter_total INTEGER, iter_aggregated INTEGER, "
                     "iter_start INTEGER, iter_stop INTEGER, key_node_id INTEGER",
}

WORDS = ["default-domain", "conv2d", "relu", "float16", "fprop", "[[8,3,32,32],[6,3,3,3]]\n", "null\n", "gemm", "void ns::gemm<float>(float*)",
         "cudaMemcpyAsync_v3020", "cudaMemsetAsync_v3020", "cudaMalloc_v3020", "cudaDeviceSynchronize_v3020", "", "bprop", "[[8,6,30,30]]\n",
         "odd", "void fused(float*)", "other"]
W = {w: i + 1 for i, w in enumerate(WORDS)}


def sample(version="1.8.0"):
    """Two ops, conv2d called twice on two threads of which the second's kernel is said to be the first's, one relu, one call outside."""
    null, empty = W["null\n"], W[""]
    return {
        "dictionary": [(i, w) for w, i in W.items()],
        "db_version": [(1, version, "1.3.0")],
        "read_only_domains": [(1, 1)],
        "read_only_model_info": [(1, 1, "default-domain", "my model")],
        "read_only_gpu_infos": [(1, 0, "Some GPU", 7, 0, 80)],
        "read_only_system_config": [(1, "1", "Some CPU", "450.1", "PyTorch 1.8", "11.1", "8.0", "2021.2", "v1.8.0", "dlprof python x.py")],
        "read_only_grid_block": [(1, 8, 1, 1), (2, 128, 1, 1)],
        "read_only_ops": [(1, 1, "CONV2D_1", "/Net/conv2d", W["conv2d"], 0, W["float16"], W["fprop"], "a.py:1\nb.py:2"),
                          (2, 1, "RELU_1", "/Net/relu[2]", W["relu"], 3, W["float16"], W["bprop"], ""),
                          (3, 1, "CUDADEVICESYNCHRONIZE_V3020_1", "unassociated_cudaDeviceSynchronize_v3020",
                           W["cudaDeviceSynchronize_v3020"], 2, empty, empty, "")],
        "read_only_op_instances": [(1, 1, 100, 200, 5, 5, W["[[8,3,32,32],[6,3,3,3]]\n"], W["[[8,6,30,30]]\n"], null),
                                   (2, 1, 150, 300, 5, 6, W["[[8,3,32,32],[6,3,3,3]]\n"], W["[[8,6,30,30]]\n"], null),
                                   (3, 2, 320, 400, 5, 5, W["[[8,6,30,30]]\n"], null, null),
                                   (4, 3, 500, 510, 5, 5, null, null, null)],
        "read_only_kernels": [(1, 1, 0, W["gemm"], W["void ns::gemm<float>(float*)"], 1, 110, 120, 130, 180, 1, 2, 0, 5, 5),
                              (2, 1, 1, W["gemm"], W["void ns::gemm<float>(float*)"], 1, 160, 170, 190, 250, 1, 2, 0, 5, 6),
                              (3, 1, 0, W["odd"], W["void fused(float*)"], 0, 410, 415, 420, 425, 1, 2, 0, 5, 5),
                              (4, 2, 0, W["gemm"], W["void ns::gemm<float>(float*)"], 0, 330, 340, 350, 360, 1, 2, 0, 5, 5),
                              (5, 2, 0, W["gemm"], W["void ns::gemm<float>(float*)"], 0, 330, 340, 360, 370, 1, 2, 0, 5, 5)],
        "read_only_memcpys": [(1, 2, 0, W["cudaMemcpyAsync_v3020"], 345, 350, 372, 380, 4096, 2, 0, 5, 5)],
        "read_only_memsets": [(1, 2, 0, W["cudaMemsetAsync_v3020"], 352, 355, 381, 383, 64, 0, 5, 5)],
        "read_only_cuda_calls": [(1, 1, 0, W["cudaMalloc_v3020"], 102, 108, 5, 5)],
        "read_only_cuda_syncs": [(1, 3, 0, W["cudaDeviceSynchronize_v3020"], 500, 510, 5, 5)],
        "aggregations": [(1, "me", "here", "2021-09-01 10:00:00", 0), (2, "me", "here", "2021-09-02 10:00:00", 0), (3, "you", "there", 7, 9)],
        "iteration_key": [(1, 1, empty), (2, 2, W["relu"])],
        "expert_systems_feedback": [(1, 2, "a", "b", "c"), (2, 2, "d", "e", "f")],
        "model_summary": [(1, 1, 1, 510, 0.25, 0.0, 79.5, 510.0, 0.0, 1, 1, 0, 0, empty),
                          (2, 2, 1, 300, 12.5, 50.0, 10.25, 150.0, 2.5, 3, 2, 1, 2, W["relu"])],
    }


def make(path, rows, page_size=None, tables=TABLES, extra=()):
    db = sqlite3.connect(path)
    if page_size:
        db.execute(f"PRAGMA page_size={page_size}")
    for table, columns in tables.items():
        db.execute(f"CREATE TABLE {table} ({columns})")
        for r in rows.get(table, ()):
            db.execute(f"INSERT INTO {table} VALUES ({','.join('?' * len(r))})", r)
    for statement in extra:
        db.execute(statement)
    db.commit()
    db.close()
