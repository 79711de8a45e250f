package placement

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/estimate"
	"github.com/flotilla-io/flotilla/policies/eviction"
	"github.com/flotilla-io/flotilla/policies/failover"
	"github.com/flotilla-io/flotilla/policies/placement/answers"
	"github.com/flotilla-io/flotilla/policies/placement/framework"
	"github.com/flotilla-io/flotilla/policies/placement/unplaced"
)

// Record is the outcome of a decision. It is an annotation on the binding,
// written with the placement, so that the loop that writes status can report
// it.
type Record struct {
	// Reason is one of those of the Scheduled condition.
	Reason string `json:"reason"`
	// Message for users.
	Message string `json:"message,omitempty"`
	// AffinityName is the affinity term in force.
	AffinityName string `json:"affinityName,omitempty"`
	// Cause distinguishes failures that differ in more than numbers: one that has
	// the same cause as the last is not written again only because it counts
	// other clusters or replicas. Empty where Message does so.
	Cause string `json:"cause,omitempty"`
	// At is when this outcome was first reached, in whole seconds.
	At metav1.Time `json:"at"`
	// Placed is when the last decision that placed the binding was made, where this
	// one did not: what was asked for until then was answered. Nil where there was
	// none, and for a success.
	Placed *metav1.Time `json:"placed,omitempty"`
	// Plugins say how those that were asked differ from the built-in ones, as --plugins
	// does: NAME is one more, -NAME one less. Nil where they do not.
	Plugins []string `json:"plugins,omitempty"`
	// Stays is what should be moved and has no place to go to. Nil where there is nothing.
	Stays *unplaced.Stays `json:"stays,omitempty"`
	// EvictionReported is what was reported last about what had no place to go to. Nil: nothing, or nothing for long.
	EvictionReported *eviction.Report `json:"told,omitempty"`
	// LastMove is the last move off a cluster. Nil: it left no cluster yet.
	LastMove *eviction.Move `json:"lastMove,omitempty"`
	// Moves are those of an application because it failed. Nil: there were none.
	Moves *failover.Moves `json:"moves,omitempty"`
	// Drained are the clusters that it was moved off because they were drained, sorted: those
	// that it may be brought back to. One goes out of it when the binding runs there again, or
	// is placed from scratch while it could.
	Drained []string `json:"drained,omitempty"`
	// Left are the clusters that it was moved off because they, or it there, failed, and that its
	// policy has it return to. One goes out of it as one of Drained does.
	Left []failover.Left `json:"left,omitempty"`
	// Rules are the failover rules that were in force, where there are some. A change of them alone is not written.
	Rules *failover.Noted `json:"failover,omitempty"`
	answers.Asked
}

// equals reports whether the two mean the same to a user.
func (r Record) equals(other Record) bool {
	return r.sameOutcome(other) && r.Stays.Equal(other.Stays) && slices.EqualFunc(r.Left, other.Left, failover.Left.Equal)
}

func (r Record) sameOutcome(other Record) bool {
	if r.Reason != other.Reason || r.AffinityName != other.AffinityName || r.Cause != other.Cause {
		return false
	}
	return r.Cause != "" || r.Message == other.Message
}

// Succeeded reports whether the decision placed the binding.
func (r Record) Succeeded() bool { return r.Reason == workv1alpha2.BindingReasonSuccess }

// LacksCapacity reports whether the decision failed because clusters fit and have no room: a
// later one may succeed once there is some.
func (r Record) LacksCapacity() bool {
	return r.Reason == workv1alpha2.BindingReasonUnschedulable || !r.Succeeded() && r.Cause == framework.CauseCapacity
}

// LastPlaced returns when the binding was last placed, as far as r knows; nil where
// it does not.
func (r Record) LastPlaced() *metav1.Time {
	if r.Succeeded() {
		return &r.At
	}
	return r.Placed
}

// Retries reports whether the decision is worth another try when nothing has
// changed. One for which no cluster fits waits for a change.
func (r Record) Retries() bool {
	return !r.Succeeded() && r.Reason != workv1alpha2.BindingReasonNoClusterFit
}

// RecordOf returns the record on b, and false where there is none that can be
// read.
func RecordOf(b metav1.Object) (Record, bool) {
	text, ok := b.GetAnnotations()[workv1alpha2.SchedulingDecisionAnnotation]
	if !ok {
		return Record{}, false
	}
	var r Record
	if err := json.Unmarshal([]byte(text), &r); err != nil || r.Reason == "" {
		return Record{}, false
	}
	return r, true
}

// Situation is the input of a decision besides the binding.
type Situation struct {
	// Clusters at this moment, with what was reserved for others there.
	Clusters Snapshot
	// Peers are the bindings that this one wants to be with or apart from.
	Peers framework.Peers
	// Estimates is what was answered about clusters that were asked what fits there, by name;
	// see Asks. Of all others what they report counts.
	Estimates map[string]estimate.Answer
	// Unreported is what clusters that could not answer do not report, by name.
	Unreported map[string]string
	// Now dates the decision.
	Now time.Time
}

// Decision is what is to be written on a binding.
type Decision struct {
	// Clusters is the new spec.clusters.
	Clusters []workv1alpha2.TargetCluster
	// Evictions is the new spec.gracefulEvictionTasks: the clusters that are left for
	// others, and what others than the scheduler asked for.
	Evictions []workv1alpha2.GracefulEvictionTask
	// AppliedPlacement is the new applied-placement annotation.
	AppliedPlacement string
	// Record is the new decision record.
	Record Record
	// Why a decision was due.
	Why string
	// Evicts are the clusters that are left because they, or what runs there, failed.
	Evicts []string
	// Next is when another decision may be due because time has passed; zero where
	// none will. It holds for what is not to be written, too.
	Next time.Time
	// Err is why the binding could not be placed; nil where it was.
	Err error
}

// Annotations returns the annotations that carry the decision. Deterministic.
func (d Decision) Annotations() map[string]string {
	out := map[string]string{}
	if record, err := json.Marshal(d.Record); err == nil && d.Record.Reason != "" { // strings and a time always encode
		out[workv1alpha2.SchedulingDecisionAnnotation] = string(record)
	}
	if d.AppliedPlacement != "" {
		out[policyv1alpha1.PolicyPlacementAnnotation] = d.AppliedPlacement
	}
	return out
}

// Put writes the decision on b: its clusters, those that it leaves, and both
// annotations.
func (d Decision) Put(b workv1alpha2.Binding) {
	b.BindingSpec().Clusters = slices.Clone(d.Clusters)
	b.BindingSpec().GracefulEvictionTasks = slices.Clone(d.Evictions)
	annotations := maps.Clone(b.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	maps.Copy(annotations, d.Annotations())
	b.SetAnnotations(annotations)
}

// Decide decides where b runs, if a decision is due and b is the scheduler's
// to decide. The second result reports whether there is anything to write; asking
// again with the decision written says no.
//
// What cannot be placed stays where it is, but for clusters that are leaving:
// a placement that nothing fits must not take down what runs.
func Decide(b workv1alpha2.Binding, in Situation, opts Options) (Decision, bool) {
	s := stateOf(b)
	if !Mine(b, opts.SchedulerName) {
		return s.vacate(in, opts)
	}
	forbidden, next := barred(&s, in, opts)
	s.back = failover.BackTo(s.record.Left, in.Clusters, s.spec, forbidden, movesOf(s.record), in.Now)
	next = failover.Earlier(next, s.back.Next)
	kept := opts.Failover.Withhold(forbidden, b)
	a := placing{state: &s, in: in, opts: opts, barred: forbidden, full: kept.Clusters}
	undone, at := undo(&a)
	next = failover.Earlier(next, at)
	why, due := s.due(in.Clusters)
	evicted := targetsIn(s.spec.Clusters, forbidden)
	if !due && len(evicted) == 0 && len(kept.Clusters) == 0 && s.record.Stays == nil && slices.EqualFunc(s.record.Left, s.back.Left, failover.Left.Equal) {
		return Decision{Next: next}, false
	}
	d := undone
	if len(s.undone) == 0 {
		d = a.decide(due, evicted)
	}
	d.Record.Stays = d.Record.Stays.With(kept)
	d.Record.Rules = opts.Failover.Noted()
	d.Record.Stale = estimate.StaleIn(in.Estimates)
	d.Record.Estimates = answers.Of(in.Estimates, in.Unreported, assignedBy(s.spec), namesOf(d.Clusters), in.Now)
	d.Next, d.Why = next, why
	if !due {
		d.Why = DueEvicted
	}
	d.Record.EvictionReported = s.record.EvictionReported.Next(eviction.Unplaced{Of: d.Record.Stays.Identity(), Before: s.record.Stays != nil, Leaves: len(d.Evicts) > 0}, in.Now)
	d.Record.LastMove = lastMove(&a, &d)
	return d, s.stamp(&d, in.Now)
}

// stay keeps what runs where it is. To have it nowhere, users delete it: a name or a label that is mistyped must not take the last copy.
func (s *state) stay(d *Decision, snap Snapshot) {
	d.Clusters = staying(s.spec.Clusters, snap)
	d.Record.Message = Refusal(d.Err, len(d.Clusters) > 0)
}

// Refusal is what users are shown of an error of Place. Runs says that the template runs
// somewhere.
func Refusal(err error, runs bool) string {
	if runs && fitsNobody(err) {
		return err.Error() + " What runs stays where it is until another cluster fits."
	}
	return err.Error()
}

// RequestOf returns the request that Decide makes for b, for callers that want to
// know its result.
func RequestOf(b workv1alpha2.Binding, peers framework.Peers) Request {
	s := stateOf(b)
	return s.request(peers)
}

func (s *state) request(peers framework.Peers) Request {
	return Request{Spec: s.spec, Peers: peers, ObservedAffinity: s.affinity(), Fresh: afresh(s)}
}

func (s *state) outcome(result Result, err error) Decision {
	if err == nil {
		return Decision{
			Clusters: result.Clusters, AppliedPlacement: s.placement,
			Record: Record{Reason: workv1alpha2.BindingReasonSuccess, Message: workv1alpha2.SuccessfulSchedulingMessage, AffinityName: result.AffinityName},
		}
	}
	applied, _ := s.applied()
	d := Decision{
		Clusters: s.spec.Clusters, AppliedPlacement: applied, Err: err,
		Record: Record{Reason: workv1alpha2.BindingReasonSchedulerError, Message: err.Error(), AffinityName: s.affinity()},
	}
	var fit *FitError
	var capacity *UnschedulableError
	var caused interface{ Cause() string }
	if errors.As(err, &caused) {
		d.Record.Cause = caused.Cause()
	}
	switch {
	case errors.As(err, &fit):
		d.AppliedPlacement = s.placement
		d.Record.Reason = workv1alpha2.BindingReasonNoClusterFit
	case errors.As(err, &capacity) && !capacity.Spread:
		d.Record.Reason = workv1alpha2.BindingReasonUnschedulable
	}
	return d
}

// stamp dates d and reports whether it differs from what the binding says. An
// outcome that was reached before keeps its record, except for a rebalance,
// which is answered by a new one.
func (s *state) stamp(d *Decision, now time.Time) bool {
	d.Record.At = metav1.NewTime(now.UTC().Truncate(time.Second))
	applied, _ := s.applied()
	record := d.Record
	if fit := (*FitError)(nil); errors.As(d.Err, &fit) && fit.BearsOut(s.record.Cause) {
		record.Cause = s.record.Cause
	}
	stands := applied == d.AppliedPlacement && slices.EqualFunc(d.Clusters, s.spec.Clusters, sameTarget) &&
		equality.Semantic.DeepEqual(d.Evictions, s.spec.GracefulEvictionTasks)
	answered := !d.Record.Succeeded() || !afresh(s)
	switch {
	case s.recorded && stands && answered && s.record.equals(record):
		d.Record = s.record
		return false
	case s.recorded && stands && answered && s.record.sameOutcome(record): // it differs only in what stays
		stays, left, reported := d.Record.Stays, d.Record.Left, d.Record.EvictionReported
		d.Record = s.record
		d.Record.Stays, d.Record.Left, d.Record.EvictionReported = stays, left, reported
		return true
	}
	if s.recorded && !d.Record.Succeeded() {
		d.Record.Placed = s.record.LastPlaced()
	}
	if at := s.spec.RescheduleTriggeredAt; at != nil && d.Record.Succeeded() && at.After(d.Record.At.Time) {
		d.Record.At = *at
	}
	return true
}

func sameTarget(a, b workv1alpha2.TargetCluster) bool {
	return a.Name == b.Name && a.Replicas == b.Replicas && slices.Equal(a.Components, b.Components)
}

// AppliedPlacement returns the text of the applied-placement annotation.
func AppliedPlacement(p *policyv1alpha1.Placement) string {
	if p == nil {
		p = &policyv1alpha1.Placement{}
	}
	data, err := json.Marshal(p)
	if err != nil {
		return "{}" // plain values always encode
	}
	return string(data)
}
