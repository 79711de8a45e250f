package statistics

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
	"github.com/flotilla-io/flotilla/reconciler/templatestore"
)

// Policies counts. Use New; it is safe for use by several goroutines.
type Policies struct {
	changed func(propagation.PolicyRef)

	mu        sync.Mutex
	templates map[templatestore.Key]template
	bindings  map[templatestore.Key]binding // by template
	policies  map[propagation.PolicyRef]*policy
	unvisited int // templates that existed at the start and have had no pass since
}

// template is what is known of a template that is claimed, has a problem, or
// existed at the start and has had no pass yet.
type template struct {
	claim propagation.PolicyRef // zero: none
	// old says that it existed at the start; visited that a pass has reconciled it since.
	old, visited bool
	// problem is the error of the last pass; blamed is the policy that it concerns.
	problem Problem
	blamed  propagation.PolicyRef
}

type binding struct {
	claim   propagation.PolicyRef
	placed  bool
	problem Problem
}

type policy struct {
	templates, unvisited, bindings, placed int32
	// kinds is how many templates there are of each kind.
	kinds    map[schema.GroupVersionKind]int32
	problems map[subject]Problem
}

// subject is a template or its binding.
type subject struct {
	templatestore.Key
	binding bool
}

// New returns empty statistics. It calls changed, which must return at once, with
// each policy whose counts or problems changed.
func New(changed func(propagation.PolicyRef)) *Policies {
	return &Policies{
		changed:   changed,
		templates: map[templatestore.Key]template{},
		bindings:  map[templatestore.Key]binding{},
		policies:  map[propagation.PolicyRef]*policy{},
	}
}

// Template records a template as it is now, nil if it is gone. first
// says that it existed at the start.
func (t *Policies) Template(key templatestore.Key, now *unstructured.Unstructured, first bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	next := t.templates[key]
	next.claim = propagation.PolicyRef{}
	if now == nil {
		next = template{}
	} else {
		next.claim, _ = propagation.Claimed(now)
		next.old = next.old || first
	}
	t.putTemplate(key, next, now != nil)
}

// Visited records the result of a pass over a template: a problem that concerns the policy
// about, or an empty text for none.
func (t *Policies) Visited(key templatestore.Key, about propagation.PolicyRef, problem string, at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	next, known := t.templates[key]
	if problem == "" {
		about = propagation.PolicyRef{}
	}
	if !known && problem == "" {
		return
	}
	if problem != next.problem.Message || about != next.blamed {
		if next.old && !next.visited {
			at = time.Time{}
		}
		next.problem, next.blamed = problemOf(key, problem, at), about
	}
	next.visited = true
	t.putTemplate(key, next, true)
}

func (t *Policies) putTemplate(key templatestore.Key, next template, there bool) {
	before := t.templates[key]
	if before == next && there {
		return
	}
	t.countTemplate(key, before, -1)
	t.countTemplate(key, next, 1)
	if idle := next.claim == (propagation.PolicyRef{}) && next.problem.Message == "" && (next.visited || !next.old); idle || !there {
		delete(t.templates, key)
	} else {
		t.templates[key] = next
	}
	t.notify(before.claim, next.claim, before.blamed, next.blamed)
}

// countTemplate adds or subtracts, by sign, what a template counts for.
func (t *Policies) countTemplate(key templatestore.Key, e template, sign int32) {
	if e.old && !e.visited {
		t.unvisited += int(sign)
	}
	if e.claim != (propagation.PolicyRef{}) {
		p := t.policy(e.claim)
		p.templates += sign
		if p.kinds[key.GroupVersionKind] += sign; p.kinds[key.GroupVersionKind] == 0 {
			delete(p.kinds, key.GroupVersionKind)
		}
		if !e.visited {
			p.unvisited += sign
		}
	}
	t.countProblem(subject{Key: key}, e.blamed, e.problem, sign)
}

// Binding records a binding as it is now. at is when that was observed;
// first says that it existed at the start.
func (t *Policies) Binding(b workv1alpha2.Binding, first bool, at time.Time) {
	next := binding{}
	next.claim, _ = propagation.Claimed(b)
	record, decided := placement.RecordOf(b)
	next.placed = record.Succeeded() || (!decided && len(b.BindingSpec().Clusters) > 0)
	key := bindings.TemplateOf(b)
	if first {
		at = time.Time{}
	}
	switch failed := applyFailure(b); {
	case decided && !record.Succeeded():
		next.problem = problemOf(key, record.Message, record.At.Time)
	case failed != "":
		next.problem = problemOf(key, failed, at)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	before, known := t.bindings[key]
	if next.problem.Message == before.problem.Message {
		next.problem = before.problem // the same problem, with the time at which it began
	}
	if known && before == next {
		return
	}
	t.countBinding(key, before, known, -1)
	t.countBinding(key, next, true, 1)
	t.bindings[key] = next
	t.notify(before.claim, next.claim)
}

// Unbound records that a binding is gone.
func (t *Policies) Unbound(b workv1alpha2.Binding) {
	t.mu.Lock()
	defer t.mu.Unlock()
	key := bindings.TemplateOf(b)
	before, known := t.bindings[key]
	t.countBinding(key, before, known, -1)
	delete(t.bindings, key)
	t.notify(before.claim)
}

func (t *Policies) countBinding(key templatestore.Key, e binding, there bool, sign int32) {
	if !there || e.claim == (propagation.PolicyRef{}) {
		return
	}
	p := t.policy(e.claim)
	p.bindings += sign
	if e.placed {
		p.placed += sign
	}
	t.countProblem(subject{Key: key, binding: true}, e.claim, e.problem, sign)
}

func (t *Policies) countProblem(about subject, ref propagation.PolicyRef, problem Problem, sign int32) {
	if problem.Message == "" || ref == (propagation.PolicyRef{}) {
		return
	}
	problems := t.policy(ref).problems
	if sign < 0 {
		delete(problems, about)
	} else {
		problems[about] = problem
	}
}

func (t *Policies) policy(ref propagation.PolicyRef) *policy {
	p := t.policies[ref]
	if p == nil {
		p = &policy{kinds: map[schema.GroupVersionKind]int32{}, problems: map[subject]Problem{}}
		t.policies[ref] = p
	}
	return p
}

// notify calls changed once for each policy, and forgets those with nothing left.
func (t *Policies) notify(refs ...propagation.PolicyRef) {
	reported := map[propagation.PolicyRef]bool{{}: true}
	for _, ref := range refs {
		if reported[ref] {
			continue
		}
		reported[ref] = true
		if p := t.policies[ref]; p != nil && p.templates == 0 && p.bindings == 0 && len(p.problems) == 0 {
			delete(t.policies, ref)
		}
		t.changed(ref)
	}
}

// Count is what a policy carries.
type Count struct {
	Templates, Bindings, Placed int32
	// Complete says that each of the templates has had a pass since the start, so
	// that all of their problems are known.
	Complete bool
	Problems []Problem
}

// Kinds returns the kinds of the templates that a policy claims, in no order.
func (t *Policies) Kinds(ref propagation.PolicyRef) []schema.GroupVersionKind {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p := t.policies[ref]; p != nil {
		return slices.Collect(maps.Keys(p.kinds))
	}
	return nil
}

// Forget drops a kind that is not watched any more.
func (t *Policies) Forget(gvk schema.GroupVersionKind) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key := range t.templates {
		if key.GroupVersionKind == gvk {
			t.putTemplate(key, template{}, false)
		}
	}
}

// Untaken returns the problems of templates that a policy should carry and has not
// claimed, sorted by object. known is false while a template that existed at the start
// has had no pass yet, as there may be more.
func (t *Policies) Untaken(ref propagation.PolicyRef) (problems []Problem, known bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p := t.policies[ref]; p != nil {
		for about, problem := range p.problems {
			if !about.binding && t.templates[about.Key].claim != ref {
				problems = append(problems, problem)
			}
		}
	}
	slices.SortFunc(problems, func(a, b Problem) int { return cmp.Compare(a.Object, b.Object) })
	return problems, t.unvisited == 0
}

// Of returns what a policy carries.
func (t *Policies) Of(ref propagation.PolicyRef) Count {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.policies[ref]
	if p == nil {
		return Count{Complete: true}
	}
	out := Count{Templates: p.templates, Bindings: p.bindings, Placed: p.placed, Complete: p.unvisited == 0}
	for _, problem := range p.problems {
		out.Problems = append(out.Problems, problem)
	}
	return out
}
