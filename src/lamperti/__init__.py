from lamperti import _runtime

_runtime.configure()
