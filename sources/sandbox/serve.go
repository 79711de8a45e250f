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

// order is the request to a process. The files follow it in the stream, each as a
// file.
type order struct {
	Limits Limits
	Job    build.Job
	Files  int
}

// file is one of the input files of a build.
type file struct {
	Name    string
	Content []byte
}

// answer is the response of a process: first the number of objects or the error,
// and then each object as JSON.
type answer struct {
	Objects int
	// Revealed are the texts in which secret values appear in the objects.
	Revealed []string
	Fault    string
	Is       int // the build's fault: 1 plus its index in build.Faults; 0 for none
}

const (
	// beside and besideAddresses are the memory and the address space that the
	// program itself may need in addition to its data.
	beside          = 256 << 20
	besideAddresses = 4 << 30
	// lowest is the lowest priority (nice 19).
	lowest = 19
)

// Serve runs in the child: it reads one order, applies the limits, and writes the
// answer. It returns an error only if it cannot communicate or apply the limits;
// errors of the build are part of the answer.
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

// accept reads an order and its files. It applies the order's limits to this
// process before it reads the files.
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

// send writes an order, and then its files one by one, so that there is no second
// copy of all files in memory.
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

// faulty returns the answer for a build that failed; an unknown error counts as
// build.ErrKustomize.
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

// Keep applies the limits to this process. They cannot be raised again.
func (l Limits) Keep() error {
	l = l.withDefaults()
	// If the machine runs out of memory, the kernel is to kill this process before
	// any other. Errors are ignored where that is not permitted.
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

// lowerPriority lets this process run only when nothing else does (SCHED_IDLE).
// The lowest nice priority is not enough: a waking thread would wait until this
// process's time slice is over. Each thread has its own policy, which the threads
// that it starts inherit, so the loop repeats until it finds no new threads.
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
			if err != nil { // if that is not permitted, the lowest priority has to do
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

// errCut means that the answer was truncated.
var errCut = errors.New("the answer of a build's process ended too early")

// receive reads an answer of at most most objects and reports its revealed texts
// to reveal, which may be nil. A process that reached a limit truncates its
// answer.
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

// fault is an error that occurred in the process.
type fault struct {
	text string
	is   error
}

// Error implements error.
func (f *fault) Error() string { return f.text }

// Unwrap returns the error of package build that callers distinguish.
func (f *fault) Unwrap() error { return f.is }
