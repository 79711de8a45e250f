package seal_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/flotilla-io/flotilla/controlplane/etcd"
	"github.com/flotilla-io/flotilla/controlplane/seal"
)

const secret = "the-private-key-of-the-authority"

func files() map[string][]byte { return map[string][]byte{"ca.key": []byte(secret)} }

func store(t *testing.T) []string {
	t.Helper()
	dir, err := os.MkdirTemp("", "seal-") // short enough for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	s, err := etcd.Start(t.Context(), etcd.Options{DataDir: dir, UnsafeNoFsync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s.Endpoints()
}

func vault(t *testing.T, servers []string, prefix, keyFile string) *seal.Vault {
	t.Helper()
	v, err := seal.New(seal.Options{Address: etcd.Address{Servers: servers}, Prefix: prefix, SealKeyFile: keyFile, Log: logr.Discard()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = v.Close() })
	return v
}

func raw(t *testing.T, servers []string) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: servers, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func TestWhatIsSealedIsReadByWhoHasTheKey(t *testing.T) {
	servers, key := store(t), filepath.Join(t.TempDir(), "made", "seal.key")
	first := vault(t, servers, "", key)
	if kept, version, err := first.Load(t.Context()); kept != nil || version != 0 || err != nil {
		t.Fatalf("an empty store holds %v, %d, %v", kept, version, err)
	}
	if saved, err := first.Save(t.Context(), files(), 0); !saved || err != nil {
		t.Fatalf("saved: %v, %v", saved, err)
	}
	if info, err := os.Stat(key); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("key file: %v, %v", info, err)
	}
	second := vault(t, servers, "", key)
	kept, version, err := second.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(files(), kept); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if saved, err := second.Save(t.Context(), files(), version); !saved || err != nil {
		t.Errorf("the next version: %v, %v", saved, err)
	}
	if saved, err := first.Save(t.Context(), files(), version); saved || err != nil {
		t.Errorf("over a version that was not read: %v, %v", saved, err)
	}
	all, err := raw(t, servers).Get(t.Context(), "", clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	for _, kv := range all.Kvs {
		if string(kv.Key) != "/registry/flotilla.io/pki" || strings.Contains(string(kv.Value), secret) {
			t.Errorf("the store shows %s: %s", kv.Key, kv.Value)
		}
	}
}

// TestTwoFirstStarts has several servers, each without a key, seal what they have.
func TestTwoFirstStarts(t *testing.T) {
	servers, dir := store(t), t.TempDir()
	won := make([]bool, 4)
	var all sync.WaitGroup
	for i := range won {
		v := vault(t, servers, "", filepath.Join(dir, string(rune('a'+i))))
		all.Go(func() {
			saved, err := v.Save(t.Context(), files(), 0)
			if err != nil {
				t.Error(err)
			}
			won[i] = saved
		})
	}
	all.Wait()
	winners := 0
	for i, saved := range won {
		_, err := os.Stat(filepath.Join(dir, string(rune('a'+i))))
		if saved {
			winners++
		}
		if saved != (err == nil) {
			t.Errorf("saved: %v, but the file of the key: %v", saved, err)
		}
	}
	if winners != 1 {
		t.Errorf("%d of %d have sealed theirs", winners, len(won))
	}
}

// TestFirstStartsWithOneKeyFile has servers of one machine seal what they have with
// the same file, which none has made yet. What the store holds opens with what is in
// the file afterwards, whoever was first.
func TestFirstStartsWithOneKeyFile(t *testing.T) {
	servers, dir := store(t), t.TempDir()
	for round := range 20 {
		prefix, file := fmt.Sprintf("/round-%d", round), filepath.Join(dir, strconv.Itoa(round))
		var all sync.WaitGroup
		for range 4 {
			v := vault(t, servers, prefix, file)
			all.Go(func() {
				for range 100 { // as pki does, until it has what all have
					saved, err := v.Save(t.Context(), files(), 0)
					if saved {
						return
					}
					if err != nil {
						t.Errorf("round %d: %v", round, err)
						return
					}
					if kept, _, err := v.Load(t.Context()); err != nil || kept != nil {
						if err != nil {
							t.Errorf("round %d: %v", round, err)
						}
						return
					}
				}
				t.Errorf("round %d: nothing is kept", round)
			})
		}
		all.Wait()
		if kept, _, err := vault(t, servers, prefix, file).Load(t.Context()); err != nil || kept == nil {
			t.Fatalf("round %d: a later start: %v, %v", round, kept, err)
		}
	}
}

// TestWhoMayReadTheKey: a key that others of the machine may read, or replace, is not
// used. A group may read it, since that is how a Secret's volume gives it to a process
// that is not root.
func TestWhoMayReadTheKey(t *testing.T) {
	servers, file := store(t), filepath.Join(t.TempDir(), "seal.key")
	if _, err := vault(t, servers, "", file).Save(t.Context(), files(), 0); err != nil {
		t.Fatal(err)
	}
	linked := filepath.Join(t.TempDir(), "seal.key") // as in a Secret's volume
	if err := os.Symlink(file, linked); err != nil {
		t.Fatal(err)
	}
	for mode, good := range map[os.FileMode]bool{
		0o400: true, 0o600: true, 0o440: true, 0o640: true,
		0o644: false, 0o444: false, 0o604: false, 0o660: false, 0o620: false, 0o602: false, 0o666: false,
	} {
		t.Run(mode.String(), func(t *testing.T) {
			if err := os.Chmod(file, mode); err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{file, linked} {
				kept, _, err := vault(t, servers, "", name).Load(t.Context())
				if (err == nil) != good || (kept != nil) != good {
					t.Errorf("%s: %v, want it to be good: %v", name, err, good)
				}
				wants := fmt.Sprintf("seal key: others than its owner may read or replace %s (mode %04o): chmod 600 %s, or defaultMode: 0440 where a Secret's volume holds it", name, mode, name)
				if err != nil && err.Error() != wants {
					t.Errorf("says %q, want %q", err, wants)
				}
			}
			if saved, err := vault(t, servers, "/another", file).Save(t.Context(), files(), 0); !good && (err == nil || saved) {
				t.Errorf("something was sealed with it: %v", err)
			}
		})
	}
}

func TestWhatDoesNotOpen(t *testing.T) {
	servers, dir := store(t), t.TempDir()
	key, other, none := filepath.Join(dir, "key"), filepath.Join(dir, "other"), filepath.Join(dir, "none")
	junk := filepath.Join(dir, "junk")
	if err := os.WriteFile(junk, []byte("secret-of-somebody"), 0o600); err != nil {
		t.Fatal(err)
	}
	for prefix, file := range map[string]string{"/registry": key, "/elsewhere": other} {
		if _, err := vault(t, servers, prefix, file).Save(t.Context(), files(), 0); err != nil {
			t.Fatal(err)
		}
	}
	client := raw(t, servers)
	is, err := client.Get(t.Context(), "/registry/flotilla.io/pki")
	if err != nil {
		t.Fatal(err)
	}
	sealed := string(is.Kvs[0].Value)
	for place, content := range map[string]string{
		"/moved":   sealed,
		"/changed": strings.Replace(sealed, `"sealed":"`, `"sealed":"AAAA`, 1),
		"/newer":   strings.Replace(sealed, `"version":1`, `"version":2`, 1),
		"/nothing": "nothing",
	} {
		if _, err := client.Put(t.Context(), place+"/flotilla.io/pki", content); err != nil {
			t.Fatal(err)
		}
	}
	cases := map[string]struct{ prefix, file, want string }{
		"without the file":                {"/registry", none, "there is no file " + none + ": copy it"},
		"with another key":                {"/registry", other, other + " holds key"},
		"with a file that is no key":      {"/registry", junk, "holds no seal key"},
		"copied from another place":       {"/moved", key, "copied from another place"},
		"changed":                         {"/changed", key, "was changed"},
		"of a later version":              {"/newer", key, "no version that this program knows"},
		"of something else":               {"/nothing", key, "no version that this program knows"},
		"changed, and with another's key": {"/changed", other, "nothing was changed"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			kept, _, err := vault(t, servers, c.prefix, c.file).Load(t.Context())
			if err == nil || kept != nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret-of") {
				t.Errorf("%v, want %q", err, c.want)
			}
			if _, err := os.Stat(none); err == nil {
				t.Error("a key was made")
			}
		})
	}
	after, err := client.Get(t.Context(), "/registry/flotilla.io/pki")
	if err != nil || string(after.Kvs[0].Value) != sealed {
		t.Errorf("what is sealed was replaced: %v", err)
	}
}
