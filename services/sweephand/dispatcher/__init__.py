"""Hold the dispatcher: the election, the tick loop and the leader's other lanes. The only home of kopf."""
