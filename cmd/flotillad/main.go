// Command flotillad is the server side of a fleet: the control plane, its loops as a
// separate process, an estimator, and simulated member clusters for trials.
//
// In go flags and a data directory; out come a Kubernetes-compatible API and
// kubeconfig files. SIGTERM stops every command cleanly.
package main

import (
	"os"

	"github.com/flotilla-io/flotilla/cmd/flotillad/program"
)

// version is set by the linker.
var version string

func main() {
	os.Exit(program.Run(program.Options{Version: version}))
}
