// Package housekeeping runs Kubernetes' own controllers and scheduler inside this process.
//
// What goes in: a connection to an API server that already answers, the names of the controllers to run, and the
// keys that some of them sign with. What comes out: controllers at work until the context ends, or an error.
// [HubControllers] is the part that a control plane without nodes needs; a simulated member runs all of them, and
// [RunScheduler] beside them.
//
// What it never does: end the process, take part in a leader election, listen on a port, or keep anything in a
// process-wide registry. Several instances may therefore run in one process, which is why the parts of upstream's
// controller manager are put together here rather than through its Run function: that one registers its
// configuration and its informers under names that must be unique in a process.
package housekeeping
