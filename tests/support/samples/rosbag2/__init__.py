"""Generated bags of ROS 2."""
