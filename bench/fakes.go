package main

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
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/bench/fake"
)

// fakeFleet are fake members in a process of their own, so that their CPU time
// is told apart. Its standard output starts with how they are reached; each
// object that is named on its standard input, it answers with when the object
// was in every member.
type fakeFleet struct {
	CA      []byte         `json:"ca"`
	Token   string         `json:"token"`
	Members []fake.Address `json:"members"`

	cmd *exec.Cmd
	in  io.WriteCloser
	out *json.Decoder
}

// reply is an answer of the process with the fakes.
type reply struct {
	fake.Arrival
	Error string `json:"error,omitempty"`
}

// patience is how long an object may take into every member.
const patience = 30 * time.Second

// serveFakes is the process with the fakes.
func serveFakes(ctx context.Context, opts options) (err error) {
	fleet, err := fake.Serve(ctx, opts.fakes)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, fleet.Close()) }()
	out := json.NewEncoder(os.Stdout)
	if err := out.Encode(fakeFleet{CA: fleet.CA, Token: fleet.Token, Members: fleet.Members}); err != nil {
		return fmt.Errorf("tell how the fakes are reached: %w", err)
	}
	objects := bufio.NewScanner(os.Stdin)
	for objects.Scan() {
		if err := out.Encode(arrival(ctx, fleet, objects.Text())); err != nil {
			return fmt.Errorf("tell when an object arrived: %w", err)
		}
	}
	return objects.Err()
}

func arrival(ctx context.Context, fleet *fake.Fleet, object string) reply {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	at, err := fleet.Arrived(ctx, object)
	if err != nil {
		return reply{Error: err.Error()}
	}
	return reply{Arrival: at}
}

// startFakes starts the process; it ends with this one.
func startFakes(ctx context.Context, n int) (*fakeFleet, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	f := &fakeFleet{cmd: exec.CommandContext(ctx, self, "-serve-fakes", strconv.Itoa(n))}
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
		return nil, errors.Join(fmt.Errorf("start the fake members: %w", err), f.stop())
	}
	return f, nil
}

func (f *fakeFleet) pid() int { return f.cmd.Process.Pid }

// stop ends the process: it goes when nobody asks any more.
func (f *fakeFleet) stop() error {
	_ = f.in.Close()
	if err := f.cmd.Wait(); err != nil {
		return fmt.Errorf("end the fake members: %w", err)
	}
	return nil
}

// arrived waits until namespace/name is in every member.
func (f *fakeFleet) arrived(object string) (fake.Arrival, error) {
	if _, err := fmt.Fprintln(f.in, object); err != nil {
		return fake.Arrival{}, fmt.Errorf("ask when %s arrived: %w", object, err)
	}
	var got reply
	if err := f.out.Decode(&got); err != nil {
		return fake.Arrival{}, fmt.Errorf("ask when %s arrived: %w", object, err)
	}
	if got.Error != "" {
		return fake.Arrival{}, errors.New(got.Error)
	}
	return got.Arrival, nil
}

// join registers the fake members as join does: each with a Secret that
// holds what it is reached with.
func (w *widening) join(ctx context.Context) error {
	const credentials = workv1alpha2.NamespaceKarmadaCluster
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: credentials}}
	if err := w.hub.Create(ctx, space); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("make the namespace of the credentials: %w", err)
	}
	for i, m := range w.fakes.Members {
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: credentials, Name: m.Name},
			Data:       map[string][]byte{clusterv1alpha1.SecretTokenKey: []byte(w.fakes.Token), clusterv1alpha1.SecretCADataKey: w.fakes.CA},
		}
		if err := w.hub.Create(ctx, secret); err != nil {
			return fmt.Errorf("make the credentials of %s: %w", m.Name, err)
		}
		cluster := &clusterv1alpha1.Cluster{
			ObjectMeta: metav1.ObjectMeta{Name: m.Name},
			Spec: clusterv1alpha1.ClusterSpec{
				ID: m.ID, SyncMode: clusterv1alpha1.Push, APIEndpoint: m.Endpoint, Region: regions[i%len(regions)],
				SecretRef: &clusterv1alpha1.LocalSecretReference{Namespace: credentials, Name: m.Name},
			},
		}
		if err := w.hub.Create(ctx, cluster); err != nil {
			return fmt.Errorf("join %s: %w", m.Name, err)
		}
	}
	return nil
}
