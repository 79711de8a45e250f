package diskcache_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flotilla-io/flotilla/agent/diskcache"
	"github.com/flotilla-io/flotilla/agent/kinds"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
)

// FuzzFiles: whatever lies in an agent's folder, it starts, and takes for an object
// only what is whole, named, and where it belongs.
func FuzzFiles(f *testing.F) {
	work := `{"apiVersion":"work.karmada.io/v1alpha1","kind":"Work","metadata":{"name":"web","namespace":"karmada-es-east","uid":"u","resourceVersion":"7"},"spec":{"workload":{"manifests":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"}}]}}}`
	for _, content := range []string{work, "", "{}", "null", "[]", `{"metadata":null}`, `{"metadata":{"name":""}}`, `{"metadata":{"name":"../../x","namespace":".."}}`,
		`{"kind":"Secret","metadata":{"name":"a"}}`, `{"metadata":{"name":"a","Name":"b"}}`, `{"metadata":{"name":"a","creationTimestamp":"x"}}`, work + work, "\x00\xff"} {
		for _, hashed := range []bool{true, false} {
			f.Add([]byte(content), hashed, uint16(0), true)
			f.Add([]byte(content), hashed, uint16(3), false)
		}
	}
	f.Fuzz(func(t *testing.T, content []byte, hashed bool, cut uint16, placed bool) {
		dir := t.TempDir()
		folder := filepath.Join(dir, "work.v1alpha1.work.karmada.io")
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		file := content
		if hashed {
			sum := sha256.Sum256(content)
			file = append(append([]byte(hex.EncodeToString(sum[:])), '\n'), content...)
		}
		file = file[:len(file)-min(int(cut), len(file))]
		name := "0000.json"
		var meta metav1.PartialObjectMetadata
		if json.Unmarshal(content, &meta) == nil && placed {
			sum := sha256.Sum256([]byte(meta.Namespace + "/" + meta.Name))
			name = hex.EncodeToString(sum[:20]) + ".json"
		}
		for _, path := range []string{filepath.Join(folder, name), filepath.Join(folder, "list"), filepath.Join(dir, "hub"), filepath.Join(folder, ".partial-1")} {
			if err := os.WriteFile(path, file, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		s, err := diskcache.Open(diskcache.Options{Dir: dir, Scheme: kinds.Scheme(), Log: logr.Discard()})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		whole := hashed && cut == 0
		if hub, err := s.Hub(); err == nil && (!whole || hub != string(content)) && !selfHashed(file) {
			t.Errorf("the hub is %q", hub)
		}
		err = s.Each(&workv1alpha1.Work{}, func(obj runtime.Object) {
			work, ok := obj.(*workv1alpha1.Work)
			if !ok || work.Name == "" || !selfHashed(file) || work.Name != meta.Name || work.Namespace != meta.Namespace {
				t.Errorf("%q is taken for %+v", file, obj)
			}
			if _, err := json.Marshal(work); err != nil {
				t.Errorf("what is taken for an object cannot be kept again: %v", err)
			}
		})
		if err != nil {
			t.Errorf("read: %v", err)
		}
		if _, err := os.Stat(filepath.Join(folder, ".partial-1")); err == nil {
			t.Error("what was half written stays")
		}
	})
}

// selfHashed reports whether a file begins with the hash of the rest.
func selfHashed(file []byte) bool {
	const length = 2 * sha256.Size
	if len(file) < length+1 || file[length] != '\n' {
		return false
	}
	sum := sha256.Sum256(file[length+1:])
	return string(file[:length]) == hex.EncodeToString(sum[:])
}
