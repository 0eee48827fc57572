"""The options of init(), one object for the whole process."""


class Config:
    """Config(enable_function_stack=True) makes it, once; Config() is the same object then."""

    _only = None

    def __new__(cls, enable_function_stack=False, capture_input_ops=False, delay_graph_capture=False, debug_graph=False):
        if cls._only is None:
            cls._only = super().__new__(cls)
            cls._only.func_stack_enabled = enable_function_stack or capture_input_ops
            cls._only.capture_input_ops = capture_input_ops
            cls._only.delay_graph_capture = delay_graph_capture
            cls._only.debug_graph = debug_graph
        return cls._only
