package storetest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/flotilla-io/flotilla/controlplane/etcd"
)

// bare is a store that nothing serves.
type bare struct {
	folder string
	store  *etcd.Server
}

func (b *bare) Folder() string { return b.folder }

func (b *bare) Stop() error {
	b.store.Stop()
	return os.RemoveAll(b.folder)
}

// startBare starts one that holds some keys.
func startBare(ctx context.Context) (*bare, error) {
	dir, err := os.MkdirTemp("", "bare-")
	if err != nil {
		return nil, err
	}
	b := &bare{folder: dir}
	if b.store, err = etcd.Start(ctx, etcd.Options{DataDir: filepath.Join(dir, "etcd"), UnsafeNoFsync: true}); err != nil {
		return nil, err
	}
	client, err := connect(b)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	for key, value := range map[string]string{"/registry/a": "1", "/registry/b": "1", "/registry/masterleases/x": "1"} {
		if _, err := client.Put(ctx, key, value); err != nil {
			return nil, err
		}
	}
	return b, nil
}

func connect(b *bare) (*clientv3.Client, error) {
	address, err := etcd.AddressIn(filepath.Join(b.folder, "etcd"))
	if err != nil {
		return nil, err
	}
	return etcd.Connect(address)
}

// TestATestFindsNothingOfAnother: each test finds what the server began with, on the server
// of the one before, and on one of its own beside it, or after one that failed.
func TestATestFindsNothingOfAnother(t *testing.T) {
	var pool Pool[*bare]
	began := map[string]string{"/registry/a": "1", "/registry/b": "1"}
	var folders []string
	use := func(t *testing.T) *clientv3.Client {
		b := pool.Lend(t, "", startBare)
		folders = append(folders, filepath.Base(b.folder))
		client, err := connect(b)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { client.Close() })
		if diff := cmp.Diff(began, contents(t, client)); diff != "" {
			t.Errorf("what is in the store (-want +got):\n%s", diff)
		}
		return client
	}
	t.Run("that writes, changes and deletes", func(t *testing.T) {
		client := use(t)
		for i := range 3 * most {
			write(t, client, clientv3.OpPut(fmt.Sprintf("/registry/new/%d", i), "2"))
		}
		write(t, client, clientv3.OpPut("/registry/a", "2"), clientv3.OpDelete("/registry/b"), clientv3.OpPut("/registry/masterleases/x", "2"))
	})
	t.Run("on the same server", func(t *testing.T) { write(t, use(t), clientv3.OpDelete("/registry/a")) })
	t.Run("two at a time", func(t *testing.T) {
		write(t, use(t), clientv3.OpDelete("/registry/a"))
		use(t)
	})
	if err := pool.Stop(); err != nil {
		t.Fatal(err)
	}
	if folders[0] != folders[1] || folders[1] != folders[2] || folders[2] == folders[3] {
		t.Errorf("the tests had the servers %q", folders)
	}
	for _, folder := range folders {
		if _, err := os.Stat(filepath.Join(os.TempDir(), folder)); !os.IsNotExist(err) {
			t.Errorf("folder %s of a server that has ended: %v", folder, err)
		}
	}
}

// held is what a store holds of keys that are put back.
func contents(t *testing.T, client *clientv3.Client) map[string]string {
	t.Helper()
	got, err := (&store{client: client}).read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func write(t *testing.T, client *clientv3.Client, operations ...clientv3.Op) {
	t.Helper()
	if _, err := client.Txn(t.Context()).Then(operations...).Commit(); err != nil {
		t.Fatal(err)
	}
}

// TestWhatIsWrittenAgain: what comes anew is taken away again, until it comes no more;
// what a server writes into an object that was put back stays, and is not fought about.
func TestWhatIsWrittenAgain(t *testing.T) {
	b, err := startBare(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer b.Stop()
	s, err := openStore(t.Context(), b.folder)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	changes := s.client.Watch(ctx, "/registry/", clientv3.WithPrefix())
	ended := make(chan error, 1)
	go func() { ended <- answer(ctx, s.client, changes) }()
	write(t, s.client, clientv3.OpPut("/registry/made", "2"), clientv3.OpPut("/registry/a", "2"))
	if err := s.putBack(t.Context()); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"/registry/a": "the server's", "/registry/b": "1"}
	if diff := cmp.Diff(want, contents(t, s.client)); diff != "" {
		t.Errorf("what is in the store (-want +got):\n%s", diff)
	}
}

// answer is a controller: it makes what is deleted anew, three times, and has the last word on
// what was put back.
func answer(ctx context.Context, client *clientv3.Client, changes clientv3.WatchChan) error {
	again := 3
	for change := range changes {
		for _, event := range change.Events {
			var err error
			switch key := string(event.Kv.Key); {
			case event.Type == clientv3.EventTypeDelete && again > 0:
				again--
				_, err = client.Put(ctx, key, "2")
			case key == "/registry/a" && string(event.Kv.Value) == "1":
				_, err = client.Put(ctx, key, "the server's")
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}
