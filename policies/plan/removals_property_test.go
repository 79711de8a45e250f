package plan_test

import (
	"slices"
	"time"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/policies/rollup"
	"github.com/flotilla-io/flotilla/policies/staleremoval"
)

// leave is the removal of a copy.
type leave struct {
	directly bool // the policy says that two must never run at once
	// broken says that the cluster, or whoever is to remove the copy, was away since it was told to.
	broken bool
	// blocked says that it was judged again, or is to be, and the copy stays until then.
	blocked bool
	// confirmed says that the control plane has answered the agent of a cluster in pull mode since.
	confirmed bool
	// undisturbed is the truth: nothing was away since it was decided last that the copy goes.
	undisturbed bool
}

// breaks has the cluster, or whoever removes its copy, be away for a moment.
func (s *site) breaks() {
	if s.going {
		s.broken, s.confirmed = true, false
		s.undisturbed = false
	}
}

// answers reports whether the cluster is there, whatever is said of it.
func (s *site) answers() bool { return s.up && !s.dead }

// interrupts is what may happen to a cluster while its copy is being removed, and to another one.
func (l *life) interrupts(s, other *site) {
	switch l.IntN(7) {
	case 0:
		l.dies(s)
	case 1:
		l.lost(s)
	case 2:
		l.back(s)
	case 3:
		l.starts(s)
	case 4:
		l.restarts()
	case 5:
		l.unheard(s)
	default:
		l.dies(other)
	}
}

// restarts has the control plane start anew.
func (l *life) restarts() {
	for _, s := range l.sites {
		s.breaks()
	}
	l.doubts = l.now.Add(50 * time.Second)
	l.note("the control plane is killed, and starts again")
}

// unheard changes what runs in a cluster that is gone.
func (l *life) unheard(s *site) {
	if s.runs && !s.answers() {
		s.ready = l.Int32N(s.replicas + 1)
		l.note("nobody hears that %d of %d are ready in %s", s.ready, s.replicas, s.Name)
	}
}

// dies has a cluster be gone before anybody knows.
func (l *life) dies(s *site) {
	if s.answers() {
		s.observe()
		s.dead = true
		s.breaks()
		l.note("nobody knows yet that %s is gone", s.Name)
	}
}

// starts has the agent of a cluster start anew.
func (l *life) starts(s *site) {
	if s.pull && s.answers() {
		s.breaks()
		l.note("the agent of %s starts", s.Name)
	}
}

// goes reports whether the copy in a cluster that is being left is removed now.
func (l *life) goes(s *site) bool {
	switch {
	case !s.broken || s.confirmed:
		return true
	case s.pull: // its agent asks
		s.blocked = true
		return false
	}
	s.blocked = !l.judges(s)
	return !s.blocked
}

// takes is the moment in which it is decided that a copy goes whose removal was interrupted: that must not be the last one that serves.
func (l *life) takes(s *site) {
	if !s.undisturbed && !s.directly && s.ready > 0 && !l.servesBeside(s) {
		l.wrong = "the last copy that serves is taken after an interruption, in " + s.Name
	}
	s.undisturbed = true
}

// judges judges a removal again that was interrupted.
func (l *life) judges(s *site) bool {
	mode := "push"
	if s.pull {
		mode = "pull"
	}
	before := s.as()
	before.DeletionTimestamp = nil
	goes := !rollup.Serves(before, false, false) || staleremoval.Judge(l.b, s.Name, l.copyIn).Goes
	if goes {
		l.takes(s)
		l.seen["goes in "+mode+" mode"]++
	} else {
		l.seen["stays in "+mode+" mode"]++
	}
	l.note("judged again: the copy in %s goes: %t", s.Name, goes)
	return goes
}

// copyIn is what is known of the copy in a cluster. One that answers has said by then what there is.
func (l *life) copyIn(name string) staleremoval.Copy {
	o := l.of(name)
	if o == nil || !o.up || !o.work {
		return staleremoval.Copy{}
	}
	out := staleremoval.Copy{After: time.Second}
	if o.answers() {
		o.observe()
		out.After = 0
	}
	out.Healthy = rollup.Ready(o.as())
	return out
}

// confirms has the control plane answer agents.
func (l *life) confirms() {
	for _, s := range l.works(func(s *site) bool { return s.pull && s.going && s.blocked && !s.confirmed }) {
		s.confirmed = l.judges(s)
	}
}

// recalls has what stays be wanted again where it is placed again.
func (l *life) recalls() {
	for _, s := range l.works(func(s *site) bool { return s.going && s.blocked }) {
		if slices.ContainsFunc(plan.Targets(&l.b.Spec), func(t workv1alpha2.TargetCluster) bool { return t.Name == s.Name }) {
			s.going, s.leave = false, leave{}
			l.note("what is in %s is wanted again", s.Name)
		}
	}
}
