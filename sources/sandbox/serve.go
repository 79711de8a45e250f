package sandbox

import (
	"bufio"
	"context"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/flotilla-io/flotilla/sources/build"
)

// order is the request to a process. The files follow it, each as a file.
type order struct {
	Limits Limits
	Job    build.Job
	Files  int
}

// file is one of the files that a build is made from.
type file struct {
	Name    string
	Content []byte
}

// answer is the reply of a process: first how many objects there are, or what is
// wrong, and then each object as JSON.
type answer struct {
	Objects int
	// Revealed are the texts that secret values come out as.
	Revealed []string
	Fault    string
	Is       int // which of the faults of a build it is, from 1
}

const (
	// beside is what the program itself may take of memory, and of addresses, beside
	// its data.
	beside          = 256 << 20
	besideAddresses = 4 << 30
	// lowest is the lowest priority (nice 19).
	lowest = 19
)

// Serve is the child's side: it reads one order, applies the limits, and writes the
// answer. An error is one of the pipes, not of the build.
func Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	job, err := accept(in)
	if err != nil {
		return err
	}
	revealed := map[string]bool{}
	job.Input.Reveal = func(text string) { revealed[text] = true }
	objects, err := build.New(job.Limits).Build(ctx, job.Input)
	first := answer{Objects: len(objects)}
	if err != nil {
		first, objects = faulty(err), nil
	}
	first.Revealed = slices.Sorted(maps.Keys(revealed))
	buffer := bufio.NewWriter(out)
	encoder := gob.NewEncoder(buffer)
	if err := encoder.Encode(first); err != nil {
		return fmt.Errorf("write what was built: %w", err)
	}
	for n, object := range objects {
		text, err := json.Marshal(object.Object)
		if err == nil {
			err = encoder.Encode(text)
		}
		if err != nil {
			return fmt.Errorf("write what was built: %w", err)
		}
		objects[n] = nil
	}
	return buffer.Flush()
}

// accept reads an order and its files, and keeps to its limits from then on.
func accept(in io.Reader) (build.Job, error) {
	decoder := gob.NewDecoder(bufio.NewReader(in))
	var o order
	if err := decoder.Decode(&o); err != nil {
		return build.Job{}, fmt.Errorf("read what to build: %w", err)
	}
	if err := o.Limits.Keep(); err != nil {
		return build.Job{}, fmt.Errorf("set the limits of a build: %w", err)
	}
	o.Job.Input.Files = make(map[string][]byte, o.Files)
	for range o.Files {
		var f file
		if err := decoder.Decode(&f); err != nil {
			return build.Job{}, fmt.Errorf("read what to build from: %w", err)
		}
		o.Job.Input.Files[f.Name] = f.Content
	}
	return o.Job, nil
}

// send writes an order, and its files one by one: there is no copy of them all.
func send(out io.Writer, o order) error {
	files := o.Job.Input.Files
	o.Job.Input.Files, o.Files = nil, len(files)
	encoder := gob.NewEncoder(out)
	if err := encoder.Encode(o); err != nil {
		return err
	}
	for name, content := range files {
		if err := encoder.Encode(file{Name: name, Content: content}); err != nil {
			return err
		}
	}
	return nil
}

// faulty is the answer of a build that failed.
func faulty(err error) answer {
	out := answer{Fault: err.Error(), Is: 1 + slices.Index(build.Faults(), build.ErrKustomize)}
	for n, known := range build.Faults() {
		if errors.Is(err, known) {
			out.Is = n + 1
			break
		}
	}
	return out
}

// Keep applies the limits to this process. They cannot be lifted again.
func (l Limits) Keep() error {
	l = l.withDefaults()
	// A machine that runs out of memory ends this process before any other, where that is
	// let through.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
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
	return lowerPriority()
}

// lowerPriority lets this process run only when nothing else does (SCHED_IDLE). A low priority is not
// enough: a thread that wakes up would wait until this one's time slice is over. Each thread
// has a policy of its own, which those that it starts inherit.
func lowerPriority() error {
	done := map[string]bool{}
	for {
		tasks, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return err
		}
		fresh := 0
		for _, task := range tasks {
			id, err := strconv.Atoi(task.Name())
			if err != nil || done[task.Name()] {
				continue
			}
			done[task.Name()] = true
			fresh++
			err = unix.SchedSetAttr(id, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_IDLE}, 0)
			if err != nil { // where that is not let through, a low priority has to do
				err = syscall.Setpriority(syscall.PRIO_PROCESS, id, lowest)
			}
			if err != nil && !errors.Is(err, syscall.ESRCH) {
				return err
			}
		}
		if fresh == 0 {
			return nil
		}
	}
}

// errCut says that the answer was truncated.
var errCut = errors.New("the answer of a build's process ended too early")

// receive reads an answer. A process that hit a limit truncates it.
func receive(in *io.LimitedReader, most int, reveal func(text string)) ([][]byte, error) {
	decoder := gob.NewDecoder(bufio.NewReader(in))
	unreadable := fmt.Errorf("%w: its process gave no answer that can be read", build.ErrKustomize)
	cut := func(err error) error {
		switch {
		case in.N <= 0:
			return fmt.Errorf("%w: it comes to too many bytes; split the folder into several Kustomizations", build.ErrTooLarge)
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return errCut
		default:
			return unreadable
		}
	}
	var first answer
	if err := decoder.Decode(&first); err != nil {
		return nil, cut(err)
	}
	for _, text := range first.Revealed {
		if reveal != nil {
			reveal(text)
		}
	}
	switch faults := build.Faults(); {
	case first.Is < 0, first.Is > len(faults), first.Objects < 0:
		return nil, unreadable
	case first.Is > 0:
		return nil, &fault{first.Fault, faults[first.Is-1]}
	case first.Objects > most:
		return nil, fmt.Errorf("%w: %d objects, %d are allowed", build.ErrTooLarge, first.Objects, most)
	}
	out := make([][]byte, first.Objects)
	for n := range out {
		if err := decoder.Decode(&out[n]); err != nil {
			return nil, cut(err)
		}
	}
	return out, nil
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
