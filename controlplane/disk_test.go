package controlplane_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/api/crds"
	"github.com/flotilla-io/flotilla/api/scheme"
	"github.com/flotilla-io/flotilla/controlplane"
	"github.com/flotilla-io/flotilla/controlplane/disk"
	"github.com/flotilla-io/flotilla/controlplane/etcd"
	"github.com/flotilla-io/flotilla/controlplane/servertest"
)

const mebi = 1 << 20

// smallDisk mounts a file system of its own, of so many MiB, and returns where. Who
// may not mount is told so.
func smallDisk(t *testing.T, size int64) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root may mount a disk of its own")
	}
	// Not under t.TempDir: its removal must not meet a disk that is still mounted.
	base, err := os.MkdirTemp("", "flotilla-disk-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(base) })
	image, dir := filepath.Join(base, "image"), filepath.Join(base, "disk")
	if err := errors.Join(os.WriteFile(image, nil, 0o600), os.Truncate(image, size*mebi), os.Mkdir(dir, 0o700)); err != nil {
		t.Fatal(err)
	}
	for _, command := range [][]string{{"mkfs.ext4", "-q", "-m", "0", image}, {"mount", "-o", "loop", image, dir}} {
		if out, err := exec.CommandContext(t.Context(), command[0], command[1:]...).CombinedOutput(); err != nil {
			t.Skipf("a disk of its own cannot be mounted here: %s: %v\n%s", strings.Join(command, " "), err, out)
		}
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	return dir
}

// stuff leaves so many MiB on a disk, and returns the file that takes the rest.
func stuff(t *testing.T, dir string, left int64) string {
	t.Helper()
	f, err := os.CreateTemp(dir, "filler-")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	path := f.Name()
	room, err := disk.Statfs(dir)
	if err != nil {
		t.Fatal(err)
	}
	const forItself = 4 * mebi // what the file system takes for its own records
	size := room.Bytes - left*mebi
	if left == 0 {
		size = max(size-forItself, 0)
	}
	if size > 0 {
		if err := syscall.Fallocate(int(f.Fd()), 0, 0, size); err != nil {
			t.Fatal(err)
		}
	}
	if left > 0 {
		return path
	}
	block := make([]byte, 4096)
	for err = nil; err == nil; size += int64(len(block)) { // to the last block
		_, err = f.WriteAt(block, size)
	}
	return path
}

// diary is a log that is read while it is written.
type diary struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (d *diary) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.text.Write(p)
}

func (d *diary) count(text string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return strings.Count(d.text.String(), text)
}

func (d *diary) String() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.text.String()
}

// plant is a control plane on a disk of its own.
type plant struct {
	hub      client.Client // of an administrator, over the network
	log      *diary
	reported *warnings
	stop     func()
}

// warnings are what the server tells beside its answers.
type warnings struct {
	mu   sync.Mutex
	last string
}

func (w *warnings) HandleWarningHeader(_ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last = text
}

// startOn runs a control plane in a folder until stop, or the test's end.
func startOn(t *testing.T, dir string, minimum int64) *plant {
	t.Helper()
	servertest.Silence()
	definitions, err := crds.All()
	if err != nil {
		t.Fatal(err)
	}
	p := &plant{log: &diary{}, reported: &warnings{}}
	port := 0 // of the last run: on a full disk nothing that says another one can be written
	if last, err := clientcmd.BuildConfigFromFlags("", filepath.Join(dir, "admin.kubeconfig")); err == nil {
		if address, err := url.Parse(last.Host); err == nil {
			port, _ = strconv.Atoi(address.Port())
		}
	}
	plane, err := controlplane.New(t.Context(), controlplane.Options{
		DataDir: dir, SecurePort: port, Definitions: definitions, Rules: controlplane.Rules{MinFreeDisk: minimum},
		Log: logr.FromSlogHandler(slog.NewTextHandler(p.log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- plane.Run(ctx) }()
	p.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("control plane: %v", err)
		}
	})
	t.Cleanup(p.stop)
	select {
	case <-plane.Ready():
	case err := <-done:
		done <- err
		t.Fatalf("control plane ended: %v", err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", plane.KubeconfigFile())
	if err != nil {
		t.Fatal(err)
	}
	config.WarningHandler = p.reported
	if p.hub, err = client.New(rest.CopyConfig(config), client.Options{Scheme: scheme.New()}); err != nil {
		t.Fatal(err)
	}
	return p
}

func settings(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
}

// isFull reports whether a write was refused for want of room.
func isFull(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code == http.StatusInsufficientStorage && strings.HasPrefix(status.Status().Message, disk.Notice)
}

// A disk fills up under a control plane, in steps and then to the last byte: reading
// goes on, what may be written is what the reserve is for, all get the reason, and when
// somebody makes room it is as before, without a restart. A control plane that is
// started on the full disk serves what it has.
func TestTheDiskRunsFull(t *testing.T) {
	dir := smallDisk(t, 600)
	const minimum = 64 * mebi
	p := startOn(t, dir, minimum)
	write := func(name string) error { return p.hub.Create(t.Context(), settings(name)) }
	read := func(when string) {
		t.Helper()
		if err := p.hub.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "before"}, &corev1.ConfigMap{}); err != nil {
			t.Errorf("%s: read: %v", when, err)
		}
	}
	leaving := settings("leaving")
	leaving.Finalizers = []string{"test/held"}
	for _, obj := range []client.Object{settings("before"), settings("one"), settings("two"), leaving} {
		if err := p.hub.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	poll(t, "wait for the reserve", func() bool {
		info, err := os.Stat(filepath.Join(dir, "reserve"))
		return err == nil && info.Size() == minimum/2
	})
	if p.reported.last != "" {
		t.Errorf("with room, everybody is told %q", p.reported.last)
	}

	low := stuff(t, dir, 40)
	if err := write("low"); !isFull(err) {
		t.Errorf("with 40 MiB left, a write: %v", err)
	}
	if err := p.hub.Create(t.Context(), settings("low"), client.DryRunAll); err != nil {
		t.Errorf("with 40 MiB left, a dry run: %v", err)
	}
	if err := p.hub.Create(t.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "heartbeat"}}); err != nil {
		t.Errorf("with 40 MiB left, a heartbeat: %v", err)
	}
	for _, obj := range []client.Object{settings("one"), leaving} {
		if err := p.hub.Delete(t.Context(), obj); err != nil {
			t.Errorf("with 40 MiB left, a deletion: %v", err)
		}
	}
	if err := p.hub.Patch(t.Context(), leaving, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
		t.Errorf("with 40 MiB left, letting go of what is being deleted: %v", err)
	}
	read("with 40 MiB left")
	if !strings.HasPrefix(p.reported.last, disk.Notice) {
		t.Errorf("with 40 MiB left, who reads is told %q", p.reported.last)
	}

	none := stuff(t, dir, 10)
	poll(t, "wait until the reserve has given way", func() bool {
		_, err := os.Stat(filepath.Join(dir, "reserve"))
		return errors.Is(err, os.ErrNotExist)
	})
	if err := p.hub.Delete(t.Context(), settings("two")); err != nil {
		t.Errorf("with the reserve alone, a deletion: %v", err)
	}
	rest := stuff(t, dir, 0)
	for _, err := range []error{write("none"), p.hub.Delete(t.Context(), settings("before"))} {
		if !isFull(err) {
			t.Errorf("with nothing left, a write: %v", err)
		}
	}
	read("with nothing left")

	p.stop()
	p = startOn(t, dir, minimum)
	read("after a start with nothing left")
	if err := write("none"); !isFull(err) {
		t.Errorf("after a start with nothing left, a write: %v", err)
	}
	for _, file := range []string{low, none, rest} {
		if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Error(err)
		}
	}
	if err := write("after"); err != nil {
		t.Errorf("with room again, a write: %v", err)
	}
	read("with room again")
	if again := p.log.count("There is room again"); again != 1 {
		t.Errorf("the log says %d times that there is room again:\n%s", again, p.log)
	}
}

// A control plane does not start where it may not write at all, and says so.
func TestAStartOnADiskThatIsReadOnly(t *testing.T) {
	dir := smallDisk(t, 16)
	if err := syscall.Mount("", dir, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Skipf("the disk cannot be mounted for reading alone: %v", err)
	}
	_, err := controlplane.New(t.Context(), controlplane.Options{DataDir: dir, Rules: controlplane.Rules{MinFreeDisk: mebi}})
	if !errors.Is(err, syscall.EROFS) || !strings.Contains(err.Error(), dir) {
		t.Errorf("start: %v", err)
	}
}

// A control plane that was never up is not started where it cannot come up: its store is
// not made, and one that earlier starts have not filled is not served.
func TestAFirstStartWithoutRoom(t *testing.T) {
	const more = 1 << 60 // than any disk has
	cases := map[string]struct {
		before func(t *testing.T, folder string)
		want   string
	}{
		"nothing is there": {want: " is free, and a first start needs "},
		"a store is there that was never filled": {
			before: func(t *testing.T, folder string) {
				store, err := etcd.Start(t.Context(), etcd.Options{DataDir: folder})
				if err != nil {
					t.Fatal(err)
				}
				store.Stop()
			},
			want: " free, and it needs ",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			servertest.Silence()
			dir := t.TempDir()
			folder := filepath.Join(dir, "etcd")
			if tc.before != nil {
				tc.before(t, folder)
			}
			plane, err := controlplane.New(t.Context(), controlplane.Options{DataDir: dir, Rules: controlplane.Rules{MinFreeDisk: more}})
			if err == nil {
				plane.Close()
			}
			if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "data directory "+dir+": no space left on device: ") || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("start: %v", err)
			}
			if _, err := os.Stat(etcd.Database(folder)); (err == nil) != (tc.before != nil) {
				t.Errorf("the store: %v", err)
			}
		})
	}
}
