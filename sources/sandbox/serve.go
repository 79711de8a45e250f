package sandbox

import (
	"bufio"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strconv"
	"syscall"

	"go.yaml.in/yaml/v3"
	"golang.org/x/sys/unix"

	"github.com/flotilla-io/flotilla/sources/build"
)

// order is what a process is asked.
type order struct {
	Limits Limits
	Job    build.Job
}

// answer is what a process says: first how many objects there are, or what is
// wrong, and then each object.
type answer struct {
	Objects int
	Fault   string
	Large   bool // the fault is that it is too large
}

const (
	// beside is what the program itself may take of memory, and of addresses, beside
	// its data.
	beside          = 256 << 20
	besideAddresses = 4 << 30
	// lowest is the priority of the nicest.
	lowest = 19
)

// Serve is the process: it reads one order, keeps to its limits, and writes the
// answer. An error is one of the pipes, not of the build.
func Serve(in io.Reader, out io.Writer) error {
	var o order
	if err := gob.NewDecoder(in).Decode(&o); err != nil {
		return fmt.Errorf("read what to build: %w", err)
	}
	if err := o.Limits.Keep(); err != nil {
		return fmt.Errorf("set the limits of a build: %w", err)
	}
	nodes, err := build.Kustomize(o.Job)
	if err == nil && len(nodes) > o.Job.Objects {
		err = fmt.Errorf("%w: %d objects, %d are allowed", build.ErrTooLarge, len(nodes), o.Job.Objects)
	}
	buffer := bufio.NewWriter(out)
	encoder := gob.NewEncoder(buffer)
	first := answer{Objects: len(nodes)}
	if err != nil {
		first = answer{Fault: err.Error(), Large: errors.Is(err, build.ErrTooLarge)}
		nodes = nil
	}
	if err := encoder.Encode(first); err != nil {
		return fmt.Errorf("write what was built: %w", err)
	}
	for _, node := range nodes {
		if err := encoder.Encode(node); err != nil {
			return fmt.Errorf("write what was built: %w", err)
		}
	}
	return buffer.Flush()
}

// Keep makes the limits those of this process, for good.
func (l Limits) Keep() error {
	l = l.withDefaults()
	debug.SetMemoryLimit(l.Memory + beside/2)
	seconds := uint64(l.CPU.Seconds())
	for _, limit := range []struct {
		resource int
		most     uint64
	}{
		{syscall.RLIMIT_DATA, uint64(l.Memory) + beside},
		{syscall.RLIMIT_AS, uint64(l.Memory) + besideAddresses},
		{syscall.RLIMIT_CPU, max(seconds, 1)},
		{syscall.RLIMIT_CORE, 0},
		{syscall.RLIMIT_FSIZE, 0},
	} {
		if err := syscall.Setrlimit(limit.resource, &syscall.Rlimit{Cur: limit.most, Max: limit.most}); err != nil {
			return err
		}
	}
	return giveWay()
}

// giveWay lets this process compute when nothing else wants to. A low priority is not
// enough: whoever wakes up would wait until its slice of time is over. Each thread
// has a policy of its own, which those that it starts inherit.
func giveWay() error {
	done := map[string]bool{}
	for {
		tasks, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return err
		}
		news := 0
		for _, task := range tasks {
			id, err := strconv.Atoi(task.Name())
			if err != nil || done[task.Name()] {
				continue
			}
			done[task.Name()] = true
			news++
			err = unix.SchedSetAttr(id, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_IDLE}, 0)
			if err != nil { // where that is not let through, a low priority has to do
				err = syscall.Setpriority(syscall.PRIO_PROCESS, id, lowest)
			}
			if err != nil && !errors.Is(err, syscall.ESRCH) {
				return err
			}
		}
		if news == 0 {
			return nil
		}
	}
}

// errCut says that the answer ended too early.
var errCut = errors.New("the answer of a build's process ended too early")

// receive reads an answer. A limit that was met shows as its end.
func receive(in *io.LimitedReader, most int) ([]*yaml.Node, error) {
	decoder := gob.NewDecoder(bufio.NewReader(in))
	cut := func(err error) error {
		if in.N > 0 && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return fmt.Errorf("%w: its process gave no answer that can be read", build.ErrKustomize)
		}
		if in.N <= 0 {
			return fmt.Errorf("%w: kustomize makes too many bytes; split the folder into several Kustomizations", build.ErrTooLarge)
		}
		return errCut
	}
	var first answer
	if err := decoder.Decode(&first); err != nil {
		return nil, cut(err)
	}
	switch {
	case first.Large:
		return nil, &fault{first.Fault, build.ErrTooLarge}
	case first.Fault != "":
		return nil, &fault{first.Fault, build.ErrKustomize}
	case first.Objects > most:
		return nil, fmt.Errorf("%w: %d objects, %d are allowed", build.ErrTooLarge, first.Objects, most)
	}
	nodes := make([]*yaml.Node, 0, max(first.Objects, 0))
	for range first.Objects {
		node := &yaml.Node{}
		if err := decoder.Decode(node); err != nil {
			return nil, cut(err)
		}
		nodes = append(nodes, node)
	}
	return nodes, nil
}

// fault is an error that was made in the process.
type fault struct {
	text string
	is   error
}

// Error implements error.
func (f *fault) Error() string { return f.text }

// Unwrap returns the error that it is for callers.
func (f *fault) Unwrap() error { return f.is }
