"""Live sources: where messages of a recording come from.

``registry`` makes a source from its spelling, ``udp://127.0.0.1:9000``, bundled or of another package (entry points
``logreel.sources``). ``streams`` reads bytes of sockets, serial ports and files, ``foxglove`` is a client of Foxglove
servers, ``ros`` runs ``ros_node`` in the Python of a ROS installation, which has only the standard library and rospy.
Only the recording imports them, by name.
"""
