package diskcache

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/flotilla-io/flotilla/internal/durable"
)

// listFile records that a kind was listed completely, and at which resource version.
// Without it the files beside it are incomplete, and no list is answered from
// them.
const listFile = "list"

// writers is how many files are written concurrently: syncs that wait for one disk
// are done together.
const writers = 16

// kindStore keeps the objects of one kind.
type kindStore struct {
	cache *Cache
	gvk   schema.GroupVersionKind
	dir   string

	writing sync.Mutex // held while the disk is brought up to date
	closed  bool       // another process may have the folder; guarded by writing

	mu      sync.Mutex
	store   cache.Store // the informer's store; nil until there is one
	listed  bool        // the hub was listed in this run
	whole   bool        // what is on disk is what the hub sent in this run
	version string      // of the last list
	read    bool        // files shows what is on disk
	files   map[string]fileInfo
	late    map[string]bool           // keys whose files are behind
	missed  map[string]runtime.Object // writes that failed, by key; nil for a removal that failed
	failing bool                      // the last write failed, and that was reported
}

// fileInfo is is kept in memory about a file.
type fileInfo struct {
	version string // resource version
	weight  string // hash of all but status and versions
}

// stored is what a kindStore has on disk.
type stored struct {
	objects []runtime.Object
	version string
	whole   bool // the kind was listed to the end
}

// close returns when nothing is being written any more, and prevents later writes.
func (ks *kindStore) close() {
	ks.writing.Lock()
	defer ks.writing.Unlock()
	ks.closed = true
}

func (ks *kindStore) attach(store cache.Store) {
	ks.mu.Lock()
	defer ks.mu.Unlock()
	ks.store = store
}

func keyOf(obj metav1.Object) string { return obj.GetNamespace() + "/" + obj.GetName() }

// back is closed while the hub serves the kind.
func (ks *kindStore) back() <-chan struct{} { return ks.cache.options.Back(ks.gvk) }

// path is the file of an object, named by a hash: object names may be longer than file names.
func (ks *kindStore) path(key string) string {
	sum := sha256.Sum256([]byte(key))
	return filepath.Join(ks.dir, hex.EncodeToString(sum[:20])+".json")
}

// load reads the files of the kind.
func (ks *kindStore) load() (stored, error) {
	entries, err := os.ReadDir(ks.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return stored{}, nil
	}
	if err != nil {
		return stored{}, fmt.Errorf("read what is kept: %w", err)
	}
	out := stored{}
	files := map[string]fileInfo{}
	for _, entry := range entries {
		if entry.Name() == listFile {
			version, err := readFile(filepath.Join(ks.dir, listFile))
			out.version, out.whole = string(version), err == nil
		}
		if !strings.HasSuffix(entry.Name(), ".json") {
			continue
		}
		obj, err := ks.open(filepath.Join(ks.dir, entry.Name()))
		if err != nil {
			ks.cache.options.Log.Error(err, "an object on disk cannot be read: it is not known before the hub is back", "kind", ks.gvk.Kind)
			continue
		}
		out.objects = append(out.objects, obj)
		files[keyOf(obj.(metav1.Object))] = fileInfoOf(obj.(metav1.Object))
	}
	ks.mu.Lock()
	defer ks.mu.Unlock()
	if !ks.read {
		ks.files, ks.read = files, true
	}
	return out, nil
}

func (ks *kindStore) open(path string) (runtime.Object, error) {
	content, err := readFile(path)
	if err != nil {
		return nil, err
	}
	obj, err := ks.cache.options.Scheme.New(ks.gvk)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(content, obj); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	named, ok := obj.(metav1.Object)
	if !ok || named.GetName() == "" || ks.path(keyOf(named)) != path {
		return nil, fmt.Errorf("%s: %w", path, errDamaged)
	}
	return obj, nil
}

// list returns a list of the objects on disk.
func (h stored) list(scheme *runtime.Scheme, gvk schema.GroupVersionKind) (runtime.Object, error) {
	list, err := scheme.New(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	if err != nil {
		return nil, err
	}
	if err := meta.SetList(list, h.objects); err != nil {
		return nil, err
	}
	accessor, err := meta.ListAccessor(list)
	if err != nil {
		return nil, err
	}
	accessor.SetResourceVersion(h.version)
	return list, nil
}

// replace makes the disk hold exactly what the hub has listed.
func (ks *kindStore) replace(list runtime.Object) error {
	ks.writing.Lock()
	defer ks.writing.Unlock()
	if ks.closed {
		return nil
	}
	gone, err := ks.begin(list)
	if err != nil {
		return errors.Join(err, ks.unlist())
	}
	var group errgroup.Group
	group.SetLimit(writers)
	err = meta.EachListItem(list, func(item runtime.Object) error {
		obj, ok := item.(metav1.Object)
		if !ok {
			return fmt.Errorf("%T is no object", item)
		}
		key := keyOf(obj)
		was, there := gone[key]
		delete(gone, key)
		if there && was == fileInfoOf(obj) {
			return nil
		}
		group.Go(func() error { return ks.put(item) })
		return nil
	})
	err = errors.Join(err, group.Wait())
	for key := range gone {
		err = errors.Join(err, ks.remove(key))
	}
	return ks.commitList(err)
}

// begin prepares the folder for a list, and returns its files.
func (ks *kindStore) begin(list runtime.Object) (map[string]fileInfo, error) {
	ks.mu.Lock()
	ks.version = "" // until it is known what is missing on disk, nothing makes it complete
	ks.mu.Unlock()
	if _, err := ks.load(); err != nil && !ks.known() {
		return nil, err
	}
	accessor, err := meta.ListAccessor(list)
	if err == nil {
		err = durable.MkdirAll(ks.dir)
	}
	if err != nil {
		return nil, err
	}
	ks.mu.Lock()
	defer ks.mu.Unlock()
	ks.version, ks.whole = accessor.GetResourceVersion(), false
	clear(ks.missed) // the list includes them
	return maps.Clone(ks.files), nil
}

func (ks *kindStore) known() bool {
	ks.mu.Lock()
	defer ks.mu.Unlock()
	return ks.read
}

// commitList ends a series of writes, of which err is the outcome. If all of the list is on disk, a
// later run may start from there; otherwise that is ruled out first, before anything uses an
// incomplete list. It returns the error of either. The caller holds writing.
func (ks *kindStore) commitList(err error) error {
	ks.mu.Lock()
	missed, whole, version := len(ks.missed), ks.whole, ks.version
	ks.mu.Unlock()
	if err == nil && missed > 0 {
		err = fmt.Errorf("%d objects are not on disk as the hub has them", missed)
	}
	if err == nil {
		err = durable.SyncDir(ks.dir)
	}
	if err != nil {
		return errors.Join(err, ks.unlist())
	}
	if whole || version == "" {
		return nil
	}
	if err := writeFile(filepath.Join(ks.dir, listFile), []byte(version)); err != nil {
		return errors.Join(err, ks.unlist())
	}
	ks.mu.Lock()
	ks.whole = true
	ks.mu.Unlock()
	return durable.SyncDir(ks.dir)
}

// unlist prevents that a later run starts from what is on disk.
func (ks *kindStore) unlist() error {
	ks.mu.Lock()
	ks.whole = false
	ks.mu.Unlock()
	if err := os.Remove(filepath.Join(ks.dir, listFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return durable.SyncDir(ks.dir)
}

// current reports whether what is on disk is all that the hub has sent in this run.
func (ks *kindStore) current() bool {
	ks.mu.Lock()
	defer ks.mu.Unlock()
	return ks.whole
}

// put writes an object, or records that the write failed.
func (ks *kindStore) put(item runtime.Object) error {
	lean, ok := item.DeepCopyObject().(metav1.Object)
	if !ok {
		return fmt.Errorf("%T is no object", item)
	}
	lean.SetManagedFields(nil)
	content, err := json.Marshal(lean)
	if err != nil {
		return err
	}
	key := keyOf(lean)
	err = writeFile(ks.path(key), content)
	ks.mu.Lock()
	defer ks.mu.Unlock()
	if err != nil {
		ks.missed[key] = item
		return err
	}
	ks.files[key] = fileInfoOf(lean)
	delete(ks.late, key)
	delete(ks.missed, key)
	return nil
}

// remove removes an object, or records that the removal failed.
func (ks *kindStore) remove(key string) error {
	err := os.Remove(ks.path(key))
	ks.mu.Lock()
	defer ks.mu.Unlock()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		ks.missed[key] = nil
		return err
	}
	delete(ks.files, key)
	delete(ks.late, key)
	delete(ks.missed, key)
	return nil
}

// waits reports whether a change of an object may be written later: nothing but its
// status, or its versions, differs from what is on disk.
func (ks *kindStore) waits(obj metav1.Object) bool {
	key, is := keyOf(obj), fileInfoOf(obj)
	ks.mu.Lock()
	defer ks.mu.Unlock()
	was, there := ks.files[key]
	if _, missed := ks.missed[key]; missed || !there || was.weight != is.weight {
		return false
	}
	ks.late[key] = true
	return true
}

// fileInfoOf hashes what matters to an agent that starts without the hub.
// Specs are distinguished by their generation; kinds that have none, by their version.
func fileInfoOf(obj metav1.Object) fileInfo {
	m := fileInfo{version: obj.GetResourceVersion()}
	weighed := []any{obj.GetUID(), obj.GetGeneration(), obj.GetDeletionTimestamp() != nil, obj.GetLabels(), obj.GetAnnotations(), obj.GetFinalizers()}
	if obj.GetGeneration() == 0 {
		weighed = append(weighed, obj.GetResourceVersion())
	}
	content, err := json.Marshal(weighed)
	if err != nil {
		panic(err) // strings, numbers and maps of strings always encode
	}
	sum := sha256.Sum256(content)
	m.weight = string(sum[:16])
	return m
}

// flush writes the objects whose files are behind, as the informer has them, and repeats
// writes that failed. An object that is on disk in a newer version than the informer's
// is left for next time.
func (ks *kindStore) flush() {
	ks.writing.Lock()
	defer ks.writing.Unlock()
	ks.mu.Lock()
	store, keys, missed := ks.store, slices.Collect(maps.Keys(ks.late)), maps.Clone(ks.missed)
	again := ks.listed && !ks.whole && ks.version != ""
	ks.mu.Unlock()
	if ks.closed || store == nil || len(keys) == 0 && !again {
		return
	}
	var group errgroup.Group
	group.SetLimit(writers)
	for key, obj := range missed {
		group.Go(func() error {
			if obj == nil {
				return ks.remove(key)
			}
			return ks.put(obj)
		})
	}
	for _, key := range keys {
		item, _, err := store.GetByKey(strings.TrimPrefix(key, "/"))
		obj, ok := item.(runtime.Object)
		if _, later := missed[key]; later || err != nil || !ok || !ks.behind(key, item) {
			continue
		}
		group.Go(func() error { return ks.put(obj) })
	}
	ks.report(ks.commitList(group.Wait()))
}

// behind reports whether what is on disk of an object differs from it in nothing but
// what may be late.
func (ks *kindStore) behind(key string, item any) bool {
	obj, ok := item.(metav1.Object)
	if !ok {
		return false
	}
	is := fileInfoOf(obj)
	ks.mu.Lock()
	defer ks.mu.Unlock()
	was, there := ks.files[key]
	return there && was.weight == is.weight
}

// report logs once that writes to the disk fail, and once that they
// succeed again.
func (ks *kindStore) report(err error) {
	ks.mu.Lock()
	was := ks.failing
	ks.failing = err != nil
	ks.mu.Unlock()
	switch {
	case err != nil && !was:
		ks.cache.options.Log.Error(err, "the disk does not take what is to be kept: until it does, a start without the hub changes nothing before the hub is back", "kind", ks.gvk.Kind)
	case err == nil && was:
		ks.cache.options.Log.Info("The disk takes what is to be kept again", "kind", ks.gvk.Kind)
	}
}
