package diskcache_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/flotilla-io/flotilla/agent/diskcache"
	"github.com/flotilla-io/flotilla/agent/kinds"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
)

const timeout = 2 * time.Minute

// hub is where Works are listed and watched.
type hub struct {
	mu       sync.Mutex
	away     error
	works    map[string]*workv1alpha1.Work
	version  int
	events   []event // what a watch from an earlier version shows
	watchers []*watch.RaceFreeFakeWatcher
	lists    int
	expire   bool
}

// event is a change of a Work.
type event struct {
	version int
	watch.Event
}

func newHub() *hub { return &hub{works: map[string]*workv1alpha1.Work{}, version: 100} }

func (h *hub) ListWithContext(_ context.Context, o metav1.ListOptions) (runtime.Object, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lists++
	if h.away != nil {
		return nil, h.away
	}
	if o.Limit > 1 || o.ResourceVersion != "" {
		return nil, fmt.Errorf("a list of %d at most, or of any version, is not all there is", o.Limit)
	}
	out := &workv1alpha1.WorkList{}
	out.ResourceVersion = strconv.Itoa(h.version)
	for _, w := range h.works {
		if o.Limit == 0 || len(out.Items) < int(o.Limit) {
			out.Items = append(out.Items, *w.DeepCopy())
		}
	}
	return out, nil
}

func (h *hub) WatchWithContext(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
	from, err := strconv.Atoi(o.ResourceVersion)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.away != nil:
		return nil, h.away
	case h.expire:
		h.expire = false
		return nil, apierrors.NewResourceExpired("the version is too old")
	}
	w := watch.NewRaceFreeFake()
	for _, e := range h.events { // between the list and this watch, too
		if e.version > from {
			w.Action(e.Type, e.Object.DeepCopyObject())
		}
	}
	h.watchers = append(h.watchers, w)
	return w, nil
}

// List and Watch are there for the type alone.
func (h *hub) List(metav1.ListOptions) (runtime.Object, error) { return nil, errors.ErrUnsupported }

func (h *hub) Watch(metav1.ListOptions) (watch.Interface, error) { return nil, errors.ErrUnsupported }

// leave cuts the hub off.
func (h *hub) leave(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.away = err
	h.hangUp()
}

func (h *hub) comeBack() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.away = nil
}

func (h *hub) hangUp() {
	for _, w := range h.watchers {
		w.Stop()
	}
	h.watchers = nil
}

// put makes or changes a Work: with a higher generation if its spec changes.
func (h *hub) put(name string, generation int64, applied string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.version++
	work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
		Namespace: "karmada-es-east", Name: name, UID: "u", Generation: generation, ResourceVersion: strconv.Itoa(h.version),
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}},
	}}
	work.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: fmt.Appendf(nil, `{"generation":%d}`, generation)}}}
	if applied != "" {
		work.Status.Applied = []workv1alpha1.AppliedHash{{Desired: applied}}
	}
	_, there := h.works[name]
	h.works[name] = work
	change := watch.Added
	if there {
		change = watch.Modified
	}
	h.show(change, work)
}

// show sends an event to those who watch now, and to those who will from an earlier version on.
func (h *hub) show(change watch.EventType, work *workv1alpha1.Work) {
	h.events = append(h.events, event{h.version, watch.Event{Type: change, Object: work}})
	for _, w := range h.watchers {
		w.Action(change, work.DeepCopy())
	}
}

func (h *hub) drop(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.version++
	work := h.works[name].DeepCopy()
	work.ResourceVersion = strconv.Itoa(h.version)
	delete(h.works, name)
	h.show(watch.Deleted, work)
}

// program is one with a cache.
type program struct {
	*diskcache.Cache
	informer cache.SharedIndexInformer
	stop     func()

	mu   sync.Mutex
	seen []string
}

func open(t *testing.T, dir string, back <-chan struct{}) *diskcache.Cache {
	t.Helper()
	return openFor(t, dir, func() <-chan struct{} { return back }, nil)
}

func openFor(t *testing.T, dir string, back func() <-chan struct{}, anew func() int) *diskcache.Cache {
	t.Helper()
	s, err := diskcache.Open(diskcache.Options{
		Dir: dir, Scheme: kinds.Scheme(), Log: logr.Discard(), Again: 50 * time.Millisecond,
		Back: func(schema.GroupVersionKind) <-chan struct{} { return back() }, Anew: anew,
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// run starts a program on a folder, and returns once it knows something.
func run(t *testing.T, dir string, h *hub) *program {
	t.Helper()
	return runFor(t, dir, h, func() <-chan struct{} { return nil }, nil)
}

func runFor(t *testing.T, dir string, h *hub, back func() <-chan struct{}, anew func() int) *program {
	t.Helper()
	s := &program{Cache: openFor(t, dir, back, anew)}
	s.informer = s.NewInformer(h, &workv1alpha1.Work{}, 0, cache.Indexers{})
	if err := s.informer.SetWatchErrorHandlerWithContext(func(context.Context, *cache.Reflector, error) {}); err != nil {
		t.Fatal(err)
	}
	record := func(what string) func(any) {
		return func(obj any) {
			if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = gone.Obj
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			s.seen = append(s.seen, what+" "+obj.(*workv1alpha1.Work).Name)
		}
	}
	if _, err := s.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: record("add"), DeleteFunc: record("delete"), UpdateFunc: func(_, obj any) { record("update")(obj) },
	}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { s.informer.RunWithContext(ctx) })
	s.stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(s.stop)
	waitCtx, done := context.WithTimeout(ctx, timeout)
	defer done()
	if !cache.WaitForCacheSync(waitCtx.Done(), s.informer.HasSynced) {
		t.Fatal("nothing is known")
	}
	return s
}

// known is what a program knows: names, generations and what was applied.
func known(objects []any) []string {
	var out []string
	for _, obj := range objects {
		w := obj.(*workv1alpha1.Work)
		line := fmt.Sprintf("%s/%d", w.Name, w.Generation)
		if len(w.Status.Applied) > 0 {
			line += "/" + w.Status.Applied[0].Desired
		}
		out = append(out, line)
	}
	slices.Sort(out)
	return out
}

// onDisk is what another program would find in a folder.
func onDisk(t *testing.T, s *diskcache.Cache) []string {
	t.Helper()
	var found []any
	if err := s.Each(&workv1alpha1.Work{}, func(obj runtime.Object) { found = append(found, obj) }); err != nil {
		t.Fatal(err)
	}
	return known(found)
}

func eventually(t *testing.T, want []string, is func() []string) {
	t.Helper()
	var got []string
	err := wait.PollUntilContextTimeout(t.Context(), 5*time.Millisecond, timeout, true, func(context.Context) (bool, error) {
		got = is()
		return slices.Equal(got, want), nil
	})
	if err != nil {
		t.Errorf("(-want +got):\n%s", cmp.Diff(want, got))
	}
}

func TestAStartWithoutTheHub(t *testing.T) {
	for name, fault := range map[string]error{
		"that is out of reach":          errors.New("connection refused"),
		"that refuses the credentials":  apierrors.NewUnauthorized("no"),
		"that forbids":                  apierrors.NewForbidden(workv1alpha1.GroupVersion.WithResource("works").GroupResource(), "", errors.New("no")),
		"that does not serve the kinds": apierrors.NewNotFound(workv1alpha1.GroupVersion.WithResource("works").GroupResource(), ""),
	} {
		t.Run(name, func(t *testing.T) {
			dir, h := t.TempDir(), newHub()
			h.put("a", 1, "h1")
			h.put("b", 1, "")
			first := run(t, dir, h)
			h.put("b", 2, "")
			h.put("c", 1, "")
			h.drop("a")
			want := []string{"b/2", "c/1"}
			eventually(t, want, func() []string { return known(first.informer.GetStore().List()) })
			first.stop()

			h.leave(fault)
			second := run(t, dir, h)
			if diff := cmp.Diff(want, known(second.informer.GetStore().List())); diff != "" {
				t.Fatalf("what a start without the hub knows (-want +got):\n%s", diff)
			}
			// Meanwhile on the hub: many changes, of which the last one counts.
			for generation := range int64(20) {
				h.put("b", 3+generation, "")
			}
			h.drop("c")
			h.put("d", 1, "")
			h.comeBack()
			want = []string{"b/22", "d/1"}
			eventually(t, want, func() []string { return known(second.informer.GetStore().List()) })
			eventually(t, []string{"add b", "add c", "add d", "delete c", "update b"}, func() []string {
				second.mu.Lock()
				defer second.mu.Unlock()
				return slices.Sorted(slices.Values(second.seen))
			})
			second.stop()
			third := open(t, dir, nil)
			defer third.Close()
			if diff := cmp.Diff(want, onDisk(t, third)); diff != "" {
				t.Errorf("what is on disk then (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAHubThatGoesKeepsWhatIsKnown(t *testing.T) {
	dir, h := t.TempDir(), newHub()
	h.put("a", 1, "")
	s := run(t, dir, h)
	h.leave(apierrors.NewNotFound(workv1alpha1.GroupVersion.WithResource("works").GroupResource(), ""))
	h.mu.Lock()
	before := h.lists
	h.mu.Unlock()
	eventually(t, []string{"asked"}, func() []string {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.lists > before {
			return []string{"asked"}
		}
		return nil
	})
	if diff := cmp.Diff([]string{"a/1"}, known(s.informer.GetStore().List())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAVersionThatIsTooOld(t *testing.T) {
	dir, h := t.TempDir(), newHub()
	h.put("a", 1, "")
	h.put("b", 1, "")
	s := run(t, dir, h)
	h.mu.Lock()
	h.expire = true
	h.hangUp()
	h.mu.Unlock()
	h.drop("a")
	h.put("b", 2, "")
	eventually(t, []string{"b/2"}, func() []string { return known(s.informer.GetStore().List()) })
}

// A hub that is put back to an earlier state takes the versions up again from there.
// A watch from a later one shows nothing before they have caught up.
func TestAHubThatIsPutBack(t *testing.T) {
	for name, tc := range map[string]struct{ version, anew int }{
		"and is behind what was seen":                     {50, 0},
		"and has given the versions that were seen again": {500, 1},
	} {
		t.Run(name, func(t *testing.T) { testPutBack(t, tc.version, tc.anew) })
	}
}

func testPutBack(t *testing.T, version, anew int) {
	var mu sync.Mutex
	there, count := make(chan struct{}), 0
	close(there)
	dir, h := t.TempDir(), newHub()
	h.put("a", 1, "")
	h.put("b", 1, "")
	s := runFor(t, dir, h, func() <-chan struct{} {
		mu.Lock()
		defer mu.Unlock()
		return there
	}, func() int {
		mu.Lock()
		defer mu.Unlock()
		return count
	})
	eventually(t, []string{"watched"}, func() []string {
		h.mu.Lock()
		defer h.mu.Unlock()
		return slices.Repeat([]string{"watched"}, len(h.watchers))
	})

	away := make(chan struct{})
	mu.Lock()
	there, count = away, anew
	mu.Unlock()
	h.leave(errors.New("connection refused"))
	h.mu.Lock()
	h.version, h.events = version, nil
	delete(h.works, "b")
	h.mu.Unlock()
	h.comeBack()
	close(away)
	eventually(t, []string{"a/1"}, func() []string { return known(s.informer.GetStore().List()) })
	h.put("c", 1, "")
	eventually(t, []string{"a/1", "c/1"}, func() []string { return known(s.informer.GetStore().List()) })
}

func TestWhatIsSeenIsOnDisk(t *testing.T) {
	dir, h := t.TempDir(), newHub()
	s := run(t, dir, h)
	missing := make(chan string, 100)
	if _, err := s.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			if w := known([]any{obj})[0]; !slices.Contains(onDisk(t, s.Cache), w) {
				missing <- w
			}
		},
	}); err != nil {
		t.Fatal(err)
	}
	for i := range 50 {
		h.put(fmt.Sprintf("w%02d", i), 1, "")
	}
	eventually(t, []string{"50"}, func() []string { return []string{strconv.Itoa(len(s.informer.GetStore().List()))} })
	select {
	case w := <-missing:
		t.Errorf("%s was seen before it was on disk", w)
	default:
	}
}

func TestStatusesAreWrittenLater(t *testing.T) {
	dir, h := t.TempDir(), newHub()
	h.put("a", 1, "")
	s := run(t, dir, h)
	h.put("a", 1, "h1")
	eventually(t, []string{"a/1/h1"}, func() []string { return known(s.informer.GetStore().List()) })
	if diff := cmp.Diff([]string{"a/1"}, onDisk(t, s.Cache)); diff != "" {
		t.Errorf("at once (-want +got):\n%s", diff)
	}
	s.Flush()
	if diff := cmp.Diff([]string{"a/1/h1"}, onDisk(t, s.Cache)); diff != "" {
		t.Errorf("later (-want +got):\n%s", diff)
	}
}

// A folder as it is when the machine loses its power.
func TestDamage(t *testing.T) {
	cases := map[string]struct {
		do   func(t *testing.T, store string)
		want []string // nil: nothing can be reported without the hub
	}{
		"none": {do: func(*testing.T, string) {}, want: []string{"a/1", "b/1"}},
		"a file that was being written": {do: func(t *testing.T, store string) {
			write(t, filepath.Join(store, ".partial-1"), "{")
		}, want: []string{"a/1", "b/1"}},
		"a file that ends too soon": {do: func(t *testing.T, store string) {
			file := someObject(t, store, "a")
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			write(t, file, string(content[:len(content)-3]))
		}, want: []string{"b/1"}},
		"a file that is empty": {do: func(t *testing.T, store string) { write(t, someObject(t, store, "a"), "") }, want: []string{"b/1"}},
		"a file under the name of another": {do: func(t *testing.T, store string) {
			if err := os.Rename(someObject(t, store, "a"), someObject(t, store, "b")); err != nil {
				t.Fatal(err)
			}
		}, want: []string{}},
		"no word of what is all": {do: func(t *testing.T, store string) {
			if err := os.Remove(filepath.Join(store, "list")); err != nil {
				t.Fatal(err)
			}
		}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			dir, h := t.TempDir(), newHub()
			h.put("a", 1, "")
			h.put("b", 1, "")
			run(t, dir, h).stop()
			c.do(t, filepath.Join(dir, "work.v1alpha1.work.karmada.io"))
			h.leave(errors.New("away"))

			s := open(t, dir, nil)
			defer s.Close()
			informer := s.NewInformer(h, &workv1alpha1.Work{}, 0, cache.Indexers{})
			ctx, cancel := context.WithCancel(t.Context())
			var running sync.WaitGroup
			running.Go(func() { informer.RunWithContext(ctx) })
			defer running.Wait()
			defer cancel()
			if c.want == nil {
				eventually(t, []string{"asked"}, func() []string {
					h.mu.Lock()
					defer h.mu.Unlock()
					if h.lists > 1 {
						return []string{"asked"}
					}
					return nil
				})
				if informer.HasSynced() {
					t.Error("an unknown part of what there is was taken for all")
				}
				return
			}
			eventually(t, []string{"true"}, func() []string { return []string{strconv.FormatBool(informer.HasSynced())} })
			got := known(informer.GetStore().List())
			if diff := cmp.Diff(c.want, append([]string{}, got...)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			left, err := filepath.Glob(filepath.Join(dir, "*", ".partial-*"))
			if err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// someObject finds the file of an object by its content.
func someObject(t *testing.T, store, name string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(store, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(files, func(file string) bool {
		content, err := os.ReadFile(file)
		return err == nil && strings.Contains(string(content), `"name":"`+name+`"`)
	})
	if at < 0 {
		t.Fatalf("%s is not on disk", name)
	}
	return files[at]
}

func TestOneProgramPerFolder(t *testing.T) {
	dir := t.TempDir()
	first := open(t, dir, nil)
	if _, err := diskcache.Open(diskcache.Options{Dir: dir, Scheme: kinds.Scheme()}); !errors.Is(err, diskcache.ErrInUse) {
		t.Errorf("a second program: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if err := open(t, dir, nil).Close(); err != nil {
		t.Error(err)
	}
}

// What a program that ends still hears does not reach the folder, which may be
// another's by then.
func TestNothingIsWrittenOnceTheFolderIsFree(t *testing.T) {
	dir, h := t.TempDir(), newHub()
	h.put("before", 1, "")
	s := run(t, dir, h)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	h.put("after", 1, "")
	eventually(t, []string{"after/1", "before/1"}, func() []string { return known(s.informer.GetStore().List()) })
	s.Flush()
	next := run(t, dir, &hub{away: errors.New("away")})
	if diff := cmp.Diff([]string{"before/1"}, known(next.informer.GetStore().List())); diff != "" {
		t.Errorf("on disk (-want +got):\n%s", diff)
	}
}

func TestWhichHub(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, nil)
	defer s.Close()
	if id, err := s.Hub(); id != "" || err != nil {
		t.Errorf("a new cache is of hub %q, %v", id, err)
	}
	if err := s.Learn("uid-1"); err != nil {
		t.Fatal(err)
	}
	if id, err := s.Hub(); id != "uid-1" || err != nil {
		t.Errorf("hub %q, %v", id, err)
	}
	write(t, filepath.Join(dir, "hub"), "uid-2")
	if id, err := s.Hub(); err == nil {
		t.Errorf("a damaged file says %q", id)
	}
}

func TestOthersCannotRead(t *testing.T) {
	dir, h := t.TempDir(), newHub()
	h.put("a", 1, "")
	s := run(t, filepath.Join(dir, "cache"), h)
	if err := s.Learn("x"); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(filepath.Join(dir, "cache"), func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %s", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
