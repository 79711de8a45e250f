// Package fakes runs fake members in a process of their own.
//
// In go lines that ask for something, out come answers, one each. The package
// decides nothing of what is measured.
package fakes

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/flotilla-io/flotilla/bench/fake"
)

// Fleet are fake members in a process of their own, so that their CPU time
// is distinguished. Its standard output starts with how they are reached; then it
// answers each line of its standard input:
//
//	arrived NAMESPACE/NAME            when the object was in every member
//	flip MEMBER NAMESPACE/NAME READY  when the member's Deployment reported that
//	                                  so many of its replicas are ready
//	storm DURATION                    how many reports there were of all
//	                                  Deployments, once a second each
type Fleet struct {
	CA      []byte         `json:"ca"`
	Token   string         `json:"token"`
	Members []fake.Address `json:"members"`

	cmd *exec.Cmd
	in  io.WriteCloser
	out *json.Decoder
}

// Reply is an answer of the process with the fakes.
type Reply struct {
	fake.Arrival
	At    time.Time `json:"at"`
	Flips int       `json:"flips"`
	Error string    `json:"error,omitempty"`
}

// Timeout is how long an object may take into every member.
const Timeout = 30 * time.Second

// Serve is the process with n fakes.
func Serve(ctx context.Context, n int) (err error) {
	fleet, err := fake.Serve(ctx, n)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, fleet.Close()) }()
	out := json.NewEncoder(os.Stdout)
	if err := out.Encode(Fleet{CA: fleet.CA, Token: fleet.Token, Members: fleet.Members}); err != nil {
		return fmt.Errorf("tell how the fakes are reached: %w", err)
	}
	requests := bufio.NewScanner(os.Stdin)
	for requests.Scan() {
		answer, err := obey(ctx, fleet, strings.Fields(requests.Text()))
		if err != nil {
			answer.Error = err.Error()
		}
		if err := out.Encode(answer); err != nil {
			return fmt.Errorf("answer %q: %w", requests.Text(), err)
		}
	}
	return requests.Err()
}

// obey does what a line asks for.
func obey(ctx context.Context, fleet *fake.Fleet, words []string) (out Reply, err error) {
	switch {
	case len(words) == 2 && words[0] == "arrived":
		out.Arrival, err = arrival(ctx, fleet, words[1])
	case len(words) == 4 && words[0] == "flip":
		var member int
		var ready int64
		if _, err := fmt.Sscan(words[1]+" "+words[3], &member, &ready); err != nil {
			return out, fmt.Errorf("read a flip: %w", err)
		}
		out.At, err = fleet.Flip(member, words[2], ready)
	case len(words) == 2 && words[0] == "storm":
		lasts, err := time.ParseDuration(words[1])
		if err != nil {
			return out, fmt.Errorf("read a storm: %w", err)
		}
		out.Flips, err = fleet.Storm(ctx, lasts)
		return out, err
	default:
		err = fmt.Errorf("%q is nothing that can be asked", words)
	}
	return out, err
}

func arrival(ctx context.Context, fleet *fake.Fleet, object string) (fake.Arrival, error) {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	return fleet.Arrived(ctx, object)
}

// Start starts this program anew with the flag -serve-fakes, which is to call
// Serve; it ends with this one.
func Start(ctx context.Context, n int) (*Fleet, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	f := &Fleet{cmd: exec.CommandContext(ctx, self, "-serve-fakes", strconv.Itoa(n))}
	f.cmd.Stderr = os.Stderr
	f.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if f.in, err = f.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("start the fake members: %w", err)
	}
	out, err := f.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start the fake members: %w", err)
	}
	if err := f.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the fake members: %w", err)
	}
	f.out = json.NewDecoder(out)
	if err := f.out.Decode(f); err != nil {
		return nil, errors.Join(fmt.Errorf("start the fake members: %w", err), f.Stop())
	}
	return f, nil
}

// PID is the id of the process.
func (f *Fleet) PID() int { return f.cmd.Process.Pid }

// Stop ends the process: it goes when nobody asks any more.
func (f *Fleet) Stop() error {
	_ = f.in.Close()
	if err := f.cmd.Wait(); err != nil {
		return fmt.Errorf("end the fake members: %w", err)
	}
	return nil
}

// Ask has the process with the fakes do something.
func (f *Fleet) Ask(request string) (Reply, error) {
	if _, err := fmt.Fprintln(f.in, request); err != nil {
		return Reply{}, fmt.Errorf("ask the fake members: %s: %w", request, err)
	}
	var got Reply
	if err := f.out.Decode(&got); err != nil {
		return Reply{}, fmt.Errorf("ask the fake members: %s: %w", request, err)
	}
	if got.Error != "" {
		return Reply{}, fmt.Errorf("ask the fake members: %s: %s", request, got.Error)
	}
	return got, nil
}

// Arrived waits until namespace/name is in every member.
func (f *Fleet) Arrived(object string) (fake.Arrival, error) {
	got, err := f.Ask("arrived " + object)
	return got.Arrival, err
}
