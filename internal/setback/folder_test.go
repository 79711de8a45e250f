package setback_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/internal/setback"
	"github.com/flotilla-io/flotilla/policies/hubclaim"
)

// folder is what an agent keeps, as far as it says how far that goes.
type folder struct {
	text    string
	current bool
	full    error
}

func (f *folder) Seen() (string, error) { return f.text, nil }

func (f *folder) See(text string) error {
	if f.full == nil {
		f.text = text
	}
	return f.full
}

func (f *folder) Current() bool { return f.current }

// TestWhatAFolderIsTrustedFor: an agent starts without its hub from what it was kept
// of that before the member got it, and not from less.
func TestWhatAFolderIsTrustedFor(t *testing.T) {
	s := newStore("100")
	k := setback.New(s, s, nil)
	if err := k.Agents(t.Context()); err != nil {
		t.Fatal(err)
	}
	first := hubclaim.Mark{Run: 1, ID: "", Revision: 60}
	f := &folder{}
	agent := func(mark *hubclaim.Mark) *edge {
		e := newEdge(t, s, mark)
		e.Checker = setback.NewChecker(setback.CheckerOptions{Cluster: "east", Hub: s, Asks: s, Member: e.member, Clock: e.clock, Folder: f})
		return e
	}
	trusts := func(mark *hubclaim.Mark) error { return agent(mark).Trust(t.Context(), "hub") }

	e := agent(nil)
	if err := e.Trust(t.Context(), "hub"); err != nil {
		t.Errorf("a member without a mark: %v", err)
	}
	if err := e.meet(t); err != nil {
		t.Fatal(err)
	}
	e.Saw("east", "60")
	made := e.next(t, nil)
	if made == nil || made.Revision != 60 {
		t.Fatalf("the first mark is %v", made)
	}
	first.ID = made.ID
	if diff := cmp.Diff("", f.text); diff != "" {
		t.Errorf("a folder that has not all says how far it goes (-want +got):\n%s", diff)
	}
	if err := trusts(made); !errors.Is(err, setback.ErrOlder) {
		t.Errorf("a folder that has not all is started from: %v", err)
	}

	f.current = true
	if next := e.next(t, made); next != nil {
		t.Errorf("a mark for nothing new: %v", next)
	}
	if err := trusts(made); err != nil {
		t.Errorf("a folder that has caught up: %v", err)
	}
	older := f.text
	e.Saw("east", "80")
	second := e.next(t, made)
	if second == nil || second.Revision != 80 {
		t.Fatalf("the second mark is %v", second)
	}
	if err := errors.Join(trusts(second), trusts(made)); err != nil {
		t.Errorf("the folder is told before the member: %v", err)
	}
	newer := f.text
	f.text = older
	if err := trusts(second); !errors.Is(err, setback.ErrOlder) {
		t.Errorf("an older copy is started from: %v", err)
	}
	if err := trusts(nil); !errors.Is(err, setback.ErrOlder) {
		t.Errorf("a folder from before the cluster was claimed anew is started from: %v", err)
	}
	f.text = ""
	if err := agent(second).Trust(t.Context(), "another"); err != nil {
		t.Errorf("a mark of another hub counts: %v", err)
	}
	f.text = newer

	f.full = errors.New("no space left on device")
	e.Saw("east", "90")
	third := e.next(t, second)
	if third == nil || third.Revision != 90 {
		t.Fatalf("a member is not told what its agent's disk does not take: %v", third)
	}
	if err := trusts(third); !errors.Is(err, setback.ErrOlder) {
		t.Errorf("a disk that was full is started from: %v", err)
	}
	f.full = nil
	e.next(t, third)
	if err := trusts(third); err != nil {
		t.Errorf("a disk that has room again: %v", err)
	}
	away := agent(third)
	away.down = errors.New("connection refused")
	if err := away.Trust(t.Context(), "hub"); err == nil {
		t.Error("a member that does not answer is trusted")
	}
}
