package sandbox

import (
	"io"

	"github.com/flotilla-io/flotilla/sources/build"
)

// Receive reads the answer of a process.
var Receive = receive

// Send writes the order for a job.
func Send(out io.Writer, job build.Job) error { return send(out, order{Job: job}) }
