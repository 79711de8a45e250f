// Package chaos disturbs a fleet while users change what runs in it, and where: it
// kills the control plane, its loops and an agent without warning, stops the leader
// until another replica leads and wakes it, and cuts members off. In one fleet the loops
// run apart from a control plane with its own store; in another one there are several
// control planes on one store, and clients change over between them. Package history
// judges what came of it.
//
// The faults follow a seed, which the tests print. How many there are is set by
// -faults; make chaos has 200. The programs must be built before (make build). With
// -short the package does nothing.
package chaos
