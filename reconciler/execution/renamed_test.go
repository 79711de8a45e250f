package execution

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/members"
)

// The names of the Work of ConfigMap shop/settings, and of that Work before.
var (
	nameNow    = workv1alpha2.WorkName("ConfigMap", "settings", "shop")
	nameBefore = workv1alpha2.FormerWorkName("ConfigMap", "settings", "shop")
)

// renamed returns a Work with a name, and the permanent ID that it keeps when it is renamed.
func renamed(name, id string) *workv1alpha1.Work {
	work := workNamed(name, "settings")
	work.Spec.Workload.Manifests[0].Raw = []byte(`{"apiVersion":"v1","data":{"from":"settings"},"kind":"ConfigMap","metadata":{"name":"settings","namespace":"shop"}}`)
	work.Labels = map[string]string{workv1alpha2.WorkPermanentIDLabel: id}
	return work
}

// newRenamed returns a worker with a Work that was applied under its former name, and also exists under its new one, as
// in the middle of a rename.
func newRenamed(t *testing.T, id string) *two {
	t.Helper()
	f := newTwoOf(t, renamed(nameBefore, "id"))
	f.reconcile(nameBefore)
	if err := f.hub.Create(t.Context(), renamed(nameNow, id)); err != nil {
		t.Fatal(err)
	}
	f.inherit()
	return f
}

// inherit gives the Work under its new name the status of the former one.
func (f *two) inherit() {
	f.t.Helper()
	now, before := f.work(nameNow), f.work(nameBefore)
	now.Status = before.Status
	now.Status.Applied[0].Desired = members.Hash(now.Spec.Workload.Manifests[0].Raw)
	if err := f.hub.Status().Update(f.t.Context(), now); err != nil {
		f.t.Fatal(err)
	}
}

func (f *two) remove(name string) {
	f.t.Helper()
	if err := f.hub.Delete(f.t.Context(), f.work(name)); err != nil {
		f.t.Fatal(err)
	}
}

// release deletes a Work without anything to do for it.
func (f *two) release(name string) {
	f.t.Helper()
	gone := f.work(name)
	f.change(name, func(w *workv1alpha1.Work) { w.Spec.SuspendDispatching, w.Finalizers = ptr.To(true), nil })
	f.reconcile(name)
	f.remove(name)
	f.loop.workGone(gone)
}

func TestARenamedWorkKeepsItsObject(t *testing.T) {
	before, now := nameBefore+" applies uid-1", nameNow+" applies uid-1"
	for name, tc := range map[string]struct {
		happens func(*two)
		asked   []string
		queued  string
	}{
		"once the former one is gone": {
			happens: func(f *two) { f.reconcile(nameNow); f.queued(); f.release(nameBefore) }, asked: []string{before, now}, queued: nameBefore + " " + nameNow,
		},
		"where the former one is gone before it is looked at": {
			happens: func(f *two) { f.release(nameBefore); f.reconcile(nameNow) }, asked: []string{before, now},
		},
		"where the former one discards what it has": {
			happens: func(f *two) { f.reconcile(nameNow); f.remove(nameBefore); f.reconcile(nameBefore, nameNow) }, asked: []string{before, now},
		},
		"where the former one does so before it is looked at": {
			happens: func(f *two) { f.remove(nameBefore); f.reconcile(nameBefore, nameNow) }, asked: []string{before, now},
		},
		"across a restart": {
			happens: func(f *two) {
				f.reconcile(nameNow)
				f.restart()
				f.remove(nameBefore)
				f.restart()
				f.reconcile(nameBefore, nameNow)
			}, asked: []string{before, now},
		},
		"and has it while the former one is there": {
			happens: func(f *two) { f.reconcile(nameNow, nameBefore, nameNow) }, asked: []string{before},
		},
		"although somebody removes it while the former one is there": {
			happens: func(f *two) { f.remove(nameNow); f.reconcile(nameNow) }, asked: []string{before},
		},
		"until both go": {
			happens: func(f *two) { f.remove(nameNow); f.remove(nameBefore); f.reconcile(nameNow, nameBefore) }, asked: []string{before, "removed uid-1"},
		},
		"until it goes before anything was sent under its new name": {
			happens: func(f *two) { f.release(nameBefore); f.remove(nameNow); f.reconcile(nameNow) }, asked: []string{before, "removed uid-1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newRenamed(t, "id")
			f.queued()
			tc.happens(f)
			queued := f.queued()
			if diff := cmp.Diff(tc.queued, queued); tc.queued != "" && diff != "" {
				t.Errorf("queued (-want +got):\n%s", diff)
			}
			if tc.queued != "" {
				f.reconcile(strings.Fields(queued)...)
			}
			f.asked(tc.asked...)
			for _, name := range []string{nameNow, nameBefore} {
				work := &workv1alpha1.Work{}
				if err := f.hub.Get(t.Context(), key(name), work); err == nil && f.applied(name) != "applied" {
					t.Errorf("%s: %s", name, f.applied(name))
				}
			}
		})
	}
}

// TestAWorkRenamedDuringALookIsLookedAtAgain: the pass has read the Work before it got the status of the
// former one, which is gone when the object is compared. So the pass does not know what was applied, nor
// what others changed since.
func TestAWorkRenamedDuringALookIsLookedAtAgain(t *testing.T) {
	f := newTwoOf(t, renamed(nameBefore, "id"))
	f.reconcile(nameBefore)
	if err := f.hub.Create(t.Context(), renamed(nameNow, "id")); err != nil {
		t.Fatal(err)
	}
	f.yard.reads = func() {
		f.yard.reads = nil
		f.inherit()
		f.release(nameBefore)
	}
	f.reconcile(nameNow)
	f.asked(nameBefore + " applies uid-1")
	f.reconcile(nameNow)
	f.asked(nameBefore+" applies uid-1", nameNow+" applies uid-1")
	if f.applied(nameNow) != "applied" {
		t.Errorf("%s: %s", nameNow, f.applied(nameNow))
	}
}

// TestAWorkOfAnotherTakesNothingOver: a former name alone is no evidence.
func TestAWorkOfAnotherTakesNothingOver(t *testing.T) {
	f := newRenamed(t, "another")
	f.reconcile(nameNow)
	f.asked(nameBefore + " applies uid-1")
	if got := f.applied(nameNow); got == "applied" || got == "nothing" {
		t.Errorf("%s: %s", nameNow, got)
	}
}

// TestASuspendedWorkIsReportedUnderItsNewName: nothing is sent to its object, which still
// names the former one.
func TestASuspendedWorkIsReportedUnderItsNewName(t *testing.T) {
	f := newRenamed(t, "id")
	f.release(nameBefore)
	f.change(nameNow, func(w *workv1alpha1.Work) { w.Spec.SuspendDispatching = ptr.To(true) })
	f.reconcile(nameNow)
	f.asked(nameBefore + " applies uid-1")
	if got := f.work(nameNow).Status.ManifestStatuses; len(got) != 1 || got[0].Health != workv1alpha1.ResourceHealthy {
		t.Errorf("says %v", got)
	}
	f.queued()
	f.loop.Changed("eu-1", f.yard.observed())
	if got := f.queued(); got != nameBefore {
		t.Errorf("queued %s", got)
	}
	if _, err := f.worker.Reconcile(t.Context(), reconcile.Request{NamespacedName: key(nameBefore)}); err != nil {
		t.Fatal(err)
	}
	if got := f.queued(); got != nameNow {
		t.Errorf("queued %s, not the Work", got)
	}
}
