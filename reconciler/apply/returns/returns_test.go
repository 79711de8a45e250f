package returns_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla-io/flotilla/reconciler/apply/returns"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func web(name string) inventory.ID {
	return inventory.ID{Namespace: "shop", Name: name, GroupKind: schema.GroupKind{Group: "apps", Kind: "Deployment"}}
}

// TestWhatIsDeletedAgainAndAgain: an object that somebody deletes as soon as it is back costs a run now and then,
// and not several a second.
func TestWhatIsDeletedAgainAndAgain(t *testing.T) {
	const ms = time.Millisecond
	var r returns.Returns
	now := noon
	var waits []time.Duration
	for range 10 {
		wait := r.Deleted(web("web"), now, 30*time.Second)
		waits = append(waits, wait)
		if wait > 0 && r.Take(now.Add(wait-1)) {
			t.Errorf("it comes back before %s are over", wait)
		}
		if now = now.Add(wait); !r.Take(now) || r.Take(now) {
			t.Errorf("it does not come back, once, after %s", wait)
		}
		now = now.Add(100 * ms)
	}
	want := []time.Duration{0, 500 * ms, 1000 * ms, 2000 * ms, 4000 * ms, 8000 * ms, 16000 * ms, 30000 * ms, 30000 * ms, 30000 * ms}
	if diff := cmp.Diff(want, waits); diff != "" {
		t.Errorf("waits (-want +got):\n%s", diff)
	}
	if wait := r.Deleted(web("other"), now, 30*time.Second); wait != 0 {
		t.Errorf("another object is waited with for %s", wait)
	}
	if wait := r.Deleted(web("web"), now.Add(29*time.Second), 30*time.Second); wait != 30*time.Second {
		t.Errorf("one that stood for less than the longest wait is waited with for %s", wait)
	}
	if wait := r.Deleted(web("web"), now.Add(90*time.Second), 30*time.Second); wait != 0 {
		t.Errorf("one that stood for as long as the longest wait is waited with for %s", wait)
	}
}

// TestTheFirstBringsAllBack: a run applies whatever is missing.
func TestTheFirstBringsAllBack(t *testing.T) {
	var r returns.Returns
	if r.Take(noon) || !r.Due().IsZero() {
		t.Error("something comes back that nobody deleted")
	}
	for range 4 {
		r.Deleted(web("web"), noon, time.Minute)
		r.Take(noon.Add(time.Minute))
	}
	r.Deleted(web("web"), noon, time.Minute)
	r.Deleted(web("other"), noon.Add(time.Second), time.Minute)
	if due := r.Due().Sub(noon); due != time.Second {
		t.Errorf("what comes first is due after %s", due)
	}
}

func TestWhatIsTold(t *testing.T) {
	var r returns.Returns
	var told []string
	for range 4 {
		r.Deleted(web("web"), noon, time.Minute)
		told = append(told, r.Told())
	}
	r.Deleted(web("web"), noon, time.Minute)
	for range 3 {
		r.Deleted(web("other"), noon, time.Minute)
	}
	told = append(told, r.Told(), r.Told())
	const text = "; Deployment/shop/web was deleted "
	const later = " times in a row, and comes back later each time: find out who deletes it"
	want := []string{"", "", text + "3" + later, text + "4" + later, text + "5" + later + "; so were 1 more", ""}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}
