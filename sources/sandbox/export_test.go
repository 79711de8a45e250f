package sandbox

import (
	"io"

	"github.com/flotilla-io/flotilla/sources/build"
)

// Receive reads the answer of a process.
var Receive = receive

// Send writes what a process is asked.
func Send(out io.Writer, job build.Job) error { return send(out, order{Job: job}) }
