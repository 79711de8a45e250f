package situation

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation/departing"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation/remark"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation/wording"
	"github.com/flotilla-io/flotilla/policies/eviction"
	"github.com/flotilla-io/flotilla/policies/failover"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/policies/rollup"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// states has the states by their names in a rollup.
var states = map[rollup.State]State{rollup.Healthy: Ready, rollup.Progressing: Progressing, rollup.Unknown: Unknown, rollup.Failed: Failed}

// Binding adds a template by its binding. With the template's metadata it also shows whether the
// binding has its last edit; nil means that the template is not known.
func (s *Survey) Binding(b workv1alpha2.Binding, template *unstructured.Unstructured) {
	s.mistyped.carriers.Take(b)
	take(s, b, template)
}

func take(s *Survey, b workv1alpha2.Binding, template *unstructured.Unstructured) {
	ref := b.BindingSpec().Resource
	if !s.counts(idOf(ref)) {
		s.holders.take(b)
		return
	}
	if rollup.Released(b) && len(plan.Targets(plan.SpecOf(b))) == 0 { // no policy asks for the last decision any more
		s.reach[idOf(ref)] = &reach{}
		s.uncarried = append(s.uncarried, idOf(ref))
		return
	}
	s.fleet.Templates.Total++
	part, found, unknown := rollup.PartOf(template, b, nil, s.silent), &reach{}, false
	var kept, gone []string
	problems := problemsOf{ref: ref, by: map[string]*Problem{}}
	if part.State != rollup.Healthy {
		problems.add(part.State, "", part.Reason+decided(b, part.Reason, s.now))
		s.members.former(part, found, &problems)
		s.asides.reported = append(s.asides.reported, idOf(ref))
	}
	if part.Fault != "" {
		problems.add(rollup.Progressing, "", part.Fault)
	}
	for _, c := range part.Clusters {
		found.clusters = append(found.clusters, c.Name)
		count := s.members.of(c.Name)
		count.Total++
		if c.KeptBack() {
			count.Suspended++
			kept = append(kept, c.Name)
			continue
		}
		if c.State == rollup.Healthy {
			count.Ready++
			found.ready = append(found.ready, c.Name)
			continue
		}
		if c.Silence != nil { // shown once, for the cluster
			count.Unknown++
			unknown = true
			continue
		}
		if part.Fault == "" || c.Reason != rollup.HealthAwaited { // otherwise the reason is shown
			if p := problems.add(c.State, c.Name, c.Reason+departing.Failing(b, c.Name, s.asides.passed.clusters, s.now)); c.Strayed {
				p.Next = strayedNext(*p, c.Suspended)
				gone = append(gone, c.Name)
			}
		}
	}
	s.members.leaving(b, found.clusters)
	stayingBehind(s, b, len(found.ready) == len(part.Clusters), &problems)
	s.asides.take(b, kept, gone, s.silent, s.now)
	s.reach[idOf(ref)] = found
	switch {
	case len(problems.by) > 0:
	case unknown:
		s.fleet.Templates.Unknown++
	case len(kept) > 0:
		s.fleet.Templates.Suspended++
	default:
		s.fleet.Templates.Ready++
		found.counted = true
	}
	if !rollup.Released(b) {
		found.seen = rollup.SeenIn(b)
	}
	for _, p := range problems.all(s.held) {
		s.problem(p)
	}
}

// stayingBehind adds a template that still runs where it is not placed any more. well is true if it is ready in its new
// place: the old copy is then no problem if its cluster cannot be reached. What has no other place is told with its
// condition, see asides.
func stayingBehind(s *Survey, b workv1alpha2.Binding, well bool, problems *problemsOf) {
	without := rollup.WithoutReplacement(b)
	for _, stays := range eviction.KeptBy(b.BindingSpec()) {
		if stays.Stuck && slices.Contains(without, stays.Cluster) {
			continue
		}
		if stays = stays.While(s.silent.Away); stays.Away && well {
			s.asides.staying = append(s.asides.staying, staying{
				idOf(problems.ref), "it was moved off " + stays.Cluster, "Its old copy goes once " + stays.Cluster + " is back, if it is healthy elsewhere by then",
			})
			continue
		}
		problems.add(rollup.Progressing, "", stays.Timed(b, s.now, s.silent.Has).String())
	}
}

// problemsOf has the problems of one template, by message: several clusters with the same message are one problem.
type problemsOf struct {
	ref workv1alpha2.ObjectReference
	by  map[string]*Problem
}

// all returns the problems with their next steps; held is true if the control plane waits because it
// was set back.
func (p *problemsOf) all(held bool) []Problem {
	var out []Problem
	for _, key := range slices.Sorted(maps.Keys(p.by)) {
		problem := *p.by[key]
		if problem.Next = cmp.Or(problem.Next, templateNext(problem)); held && strings.Contains(problem.Message, workv1alpha1.WorkHeldPrefix) {
			problem.Next = remark.ResumeNext
		}
		out = append(out, problem)
	}
	return out
}

// add adds a message about the template in a cluster, or everywhere if the cluster is empty.
func (p *problemsOf) add(state rollup.State, cluster, reason string) *Problem {
	key := states[state].word() + reason
	if p.by[key] == nil {
		p.by[key] = &Problem{State: states[state], Group: idOf(p.ref).GroupKind.Group, Kind: p.ref.Kind, Namespace: p.ref.Namespace, Name: p.ref.Name, Message: reason}
	}
	if cluster != "" {
		p.by[key].Clusters = append(p.by[key].Clusters, cluster)
	}
	return p.by[key]
}

// decided adds to a message from a placement decision when that was made: its counts are from
// that time, as a decision with the same result is not written again.
func decided(b workv1alpha2.Binding, reason string, now time.Time) string {
	record, ok := placement.RecordOf(b)
	if !ok || record.At.IsZero() || record.Message != reason {
		return ""
	}
	return " (found " + ago(now, record.At.Time) + ")"
}

// counts has counts of templates, by cluster.
type counts map[string]*Count

// of returns the count of a cluster.
func (c counts) of(cluster string) *Count {
	if c[cluster] == nil {
		c[cluster] = &Count{}
	}
	return c[cluster]
}

// former counts a template in the clusters of its previous placement, in which it does not
// count as ready, and adds their problems.
func (c counts) former(part rollup.Part, found *reach, problems *problemsOf) {
	for _, in := range part.Former {
		found.clusters = append(found.clusters, in.Name)
		count := c.of(in.Name)
		count.Total++
		switch {
		case in.Silence != nil: // shown once, for the cluster
			count.Unknown++
		case in.State != rollup.Healthy && !in.KeptBack():
			problems.add(in.State, in.Name, in.Reason)
		}
	}
}

// leaving counts a template in clusters that still have its old copy, other than those in which it counts as placed, and
// in those that it will not leave, as it has come to its end there.
func (c counts) leaving(b workv1alpha2.Binding, placed []string) {
	for _, cluster := range failover.Finished(b) {
		if slices.Contains(placed, cluster) {
			c.of(cluster).Finished++
		}
	}
	var old []string
	for _, task := range b.BindingSpec().GracefulEvictionTasks {
		old = append(old, task.FromCluster)
	}
	for _, item := range b.BindingStatus().AggregatedStatus {
		old = append(old, item.ClusterName)
	}
	slices.Sort(old)
	for _, cluster := range slices.Compact(old) {
		if !slices.Contains(placed, cluster) {
			c.of(cluster).Leaving++
		}
	}
}

func idOf(ref workv1alpha2.ObjectReference) inventory.ID {
	gvk := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
	return inventory.ID{Namespace: ref.Namespace, Name: ref.Name, GroupKind: gvk.GroupKind()}
}

// templateNext returns the next step for a template.
func templateNext(p Problem) string {
	args := strings.ToLower(p.Title()) + "/" + p.Name + wording.InNamespace(p.Namespace)
	switch {
	case len(p.Clusters) == 0:
		return "flotilla explain " + args
	case remark.OverrideNext(p.Message) != "":
		return remark.OverrideNext(p.Message) + "; flotilla explain " + args + " --cluster " + p.Clusters[0]
	case p.State == Failed && p.Group == "batch" && p.Kind == "Job":
		return "put right what the cluster says, and delete the Job to have it run again. flotilla explain " + args + " --cluster " + p.Clusters[0]
	case p.State == Failed && rollup.InTheWay(p.Message) != "":
		return rollup.InTheWay(p.Message) + ". flotilla explain " + args + " --cluster " + p.Clusters[0]
	case p.State == Failed:
		return "put right what the cluster says; it is tried again. flotilla explain " + args + " --cluster " + p.Clusters[0]
	default:
		return "flotilla events --for " + p.Title() + "/" + p.Name + wording.InNamespace(p.Namespace) + " -C " + strings.Join(p.Clusters[:min(len(p.Clusters), 3)], ",")
	}
}

// strayedNext returns the next step for a template that was changed or removed in a cluster and
// is not corrected; suspended says why.
func strayedNext(p Problem, suspended bool) string {
	return "put it right there, or " + rollup.PutBack(suspended) + "; flotilla explain " + strings.ToLower(p.Title()) + "/" + p.Name + wording.InNamespace(p.Namespace) + " --cluster " + p.Clusters[0]
}
