package shelf

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

// listFile says that a kind was listed to the end, and at which resource version.
// Without it what lies beside it is not all there is, and nothing is answered from
// it.
const listFile = "list"

// writers is how many files are written side by side: syncs that wait for one disk
// are done together.
const writers = 16

// rack keeps the objects of one kind.
type rack struct {
	shelf *Shelf
	gvk   schema.GroupVersionKind
	dir   string

	writing sync.Mutex // held by who brings the disk up to date
	closed  bool       // the folder is another's by now; guarded by writing

	mu      sync.Mutex
	store   cache.Store // what the informer has; nil until there is one
	listed  bool        // there was a list in this run
	whole   bool        // what is on disk is what the hub said in this run
	version string      // of the last list
	read    bool        // marks tell what is on disk
	marks   map[string]mark
	late    map[string]bool           // keys whose files are behind
	missed  map[string]runtime.Object // what the disk did not take, by key; nil for what it did not let go of
	failing bool                      // the last write failed, and was told
}

// mark is what is known of a file without reading it.
type mark struct {
	version string // resource version
	weight  string // hash of all but status and versions
}

// held is what a rack has on disk.
type held struct {
	objects []runtime.Object
	version string
	whole   bool // the kind was listed to the end
}

// close returns when nothing is being written, and nothing will be.
func (r *rack) close() {
	r.writing.Lock()
	defer r.writing.Unlock()
	r.closed = true
}

func (r *rack) attach(store cache.Store) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.store = store
}

func keyOf(obj metav1.Object) string { return obj.GetNamespace() + "/" + obj.GetName() }

// back is closed while the hub is there for the kind.
func (r *rack) back() <-chan struct{} { return r.shelf.options.Back(r.gvk) }

// path is where an object is kept. Names may be longer than those of files.
func (r *rack) path(key string) string {
	sum := sha256.Sum256([]byte(key))
	return filepath.Join(r.dir, hex.EncodeToString(sum[:20])+".json")
}

// load reads what is on disk.
func (r *rack) load() (held, error) {
	entries, err := os.ReadDir(r.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return held{}, nil
	}
	if err != nil {
		return held{}, fmt.Errorf("read what is kept: %w", err)
	}
	out := held{}
	marks := map[string]mark{}
	for _, entry := range entries {
		if entry.Name() == listFile {
			version, err := readFile(filepath.Join(r.dir, listFile))
			out.version, out.whole = string(version), err == nil
		}
		if !strings.HasSuffix(entry.Name(), ".json") {
			continue
		}
		obj, err := r.open(filepath.Join(r.dir, entry.Name()))
		if err != nil {
			r.shelf.options.Log.Error(err, "an object on disk cannot be read: it is not known before the hub is back", "kind", r.gvk.Kind)
			continue
		}
		out.objects = append(out.objects, obj)
		marks[keyOf(obj.(metav1.Object))] = markOf(obj.(metav1.Object))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.read {
		r.marks, r.read = marks, true
	}
	return out, nil
}

func (r *rack) open(path string) (runtime.Object, error) {
	content, err := readFile(path)
	if err != nil {
		return nil, err
	}
	obj, err := r.shelf.options.Scheme.New(r.gvk)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(content, obj); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	named, ok := obj.(metav1.Object)
	if !ok || named.GetName() == "" || r.path(keyOf(named)) != path {
		return nil, fmt.Errorf("%s: %w", path, errDamaged)
	}
	return obj, nil
}

// list makes a list of what is on disk.
func (h held) list(scheme *runtime.Scheme, gvk schema.GroupVersionKind) (runtime.Object, error) {
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

// replace makes what is on disk what the hub has listed.
func (r *rack) replace(list runtime.Object) error {
	r.writing.Lock()
	defer r.writing.Unlock()
	if r.closed {
		return nil
	}
	gone, err := r.begin(list)
	if err != nil {
		return errors.Join(err, r.unlist())
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
		if there && was == markOf(obj) {
			return nil
		}
		group.Go(func() error { return r.put(item) })
		return nil
	})
	err = errors.Join(err, group.Wait())
	for key := range gone {
		err = errors.Join(err, r.remove(key))
	}
	return r.settle(err)
}

// begin readies the folder for a list, and returns what is in it.
func (r *rack) begin(list runtime.Object) (map[string]mark, error) {
	r.mu.Lock()
	r.version = "" // until it is known what is missing on disk, nothing makes it whole
	r.mu.Unlock()
	if _, err := r.load(); err != nil && !r.known() {
		return nil, err
	}
	accessor, err := meta.ListAccessor(list)
	if err == nil {
		err = durable.MkdirAll(r.dir)
	}
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.version, r.whole = accessor.GetResourceVersion(), false
	clear(r.missed) // the list has all of it
	return maps.Clone(r.marks), nil
}

func (r *rack) known() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.read
}

// settle ends what was written with err: what is on disk may be gone on from if it is
// all that was said, and else not, before somebody sees what is missing there. It
// returns what went wrong. The caller holds writing.
func (r *rack) settle(err error) error {
	r.mu.Lock()
	missed, whole, version := len(r.missed), r.whole, r.version
	r.mu.Unlock()
	if err == nil && missed > 0 {
		err = fmt.Errorf("%d objects are not on disk as the hub has them", missed)
	}
	if err == nil {
		err = durable.SyncDir(r.dir)
	}
	if err != nil {
		return errors.Join(err, r.unlist())
	}
	if whole || version == "" {
		return nil
	}
	if err := writeFile(filepath.Join(r.dir, listFile), []byte(version)); err != nil {
		return errors.Join(err, r.unlist())
	}
	r.mu.Lock()
	r.whole = true
	r.mu.Unlock()
	return durable.SyncDir(r.dir)
}

// unlist has nobody go on from what is on disk.
func (r *rack) unlist() error {
	r.mu.Lock()
	r.whole = false
	r.mu.Unlock()
	if err := os.Remove(filepath.Join(r.dir, listFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return durable.SyncDir(r.dir)
}

// current reports whether what is on disk is all that the hub has said in this run.
func (r *rack) current() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.whole
}

// put writes an object, or notes that it is missing.
func (r *rack) put(item runtime.Object) error {
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
	err = writeFile(r.path(key), content)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.missed[key] = item
		return err
	}
	r.marks[key] = markOf(lean)
	delete(r.late, key)
	delete(r.missed, key)
	return nil
}

// remove removes an object, or notes that it is still there.
func (r *rack) remove(key string) error {
	err := os.Remove(r.path(key))
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.missed[key] = nil
		return err
	}
	delete(r.marks, key)
	delete(r.late, key)
	delete(r.missed, key)
	return nil
}

// waits reports whether a change of an object may be written later: nothing but its
// status, or its versions, differs from what is on disk.
func (r *rack) waits(obj metav1.Object) bool {
	key, is := keyOf(obj), markOf(obj)
	r.mu.Lock()
	defer r.mu.Unlock()
	was, there := r.marks[key]
	if _, missed := r.missed[key]; missed || !there || was.weight != is.weight {
		return false
	}
	r.late[key] = true
	return true
}

// markOf weighs what makes a difference to a site that starts without the hub.
// Specs are told apart by their generation; kinds that have none, by their version.
func markOf(obj metav1.Object) mark {
	m := mark{version: obj.GetResourceVersion()}
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

// flush writes the objects whose files are behind, as the informer has them, and what
// the disk did not take before. One that is on disk as the informer will have it in a
// moment is left for next time.
func (r *rack) flush() {
	r.writing.Lock()
	defer r.writing.Unlock()
	r.mu.Lock()
	store, keys, missed := r.store, slices.Collect(maps.Keys(r.late)), maps.Clone(r.missed)
	again := r.listed && !r.whole && r.version != ""
	r.mu.Unlock()
	if r.closed || store == nil || len(keys) == 0 && !again {
		return
	}
	var group errgroup.Group
	group.SetLimit(writers)
	for key, obj := range missed {
		group.Go(func() error {
			if obj == nil {
				return r.remove(key)
			}
			return r.put(obj)
		})
	}
	for _, key := range keys {
		item, _, err := store.GetByKey(strings.TrimPrefix(key, "/"))
		obj, ok := item.(runtime.Object)
		if _, later := missed[key]; later || err != nil || !ok || !r.behind(key, item) {
			continue
		}
		group.Go(func() error { return r.put(obj) })
	}
	r.tell(r.settle(group.Wait()))
}

// behind reports whether what is on disk of an object differs from it in nothing but
// what may be late.
func (r *rack) behind(key string, item any) bool {
	obj, ok := item.(metav1.Object)
	if !ok {
		return false
	}
	is := markOf(obj)
	r.mu.Lock()
	defer r.mu.Unlock()
	was, there := r.marks[key]
	return there && was.weight == is.weight
}

// tell says once that the disk does not take what is to be kept, and once that it
// does again.
func (r *rack) tell(err error) {
	r.mu.Lock()
	was := r.failing
	r.failing = err != nil
	r.mu.Unlock()
	switch {
	case err != nil && !was:
		r.shelf.options.Log.Error(err, "the disk does not take what is to be kept: until it does, a start without the hub changes nothing before the hub is back", "kind", r.gvk.Kind)
	case err == nil && was:
		r.shelf.options.Log.Info("The disk takes what is to be kept again", "kind", r.gvk.Kind)
	}
}
