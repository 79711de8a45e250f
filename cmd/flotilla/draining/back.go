package draining

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1alpha1 "github.com/flotilla-io/flotilla/api/apps/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/drain"
	"github.com/flotilla-io/flotilla/policies/placement"
)

// rebalancerStays is for how many seconds a finished WorkloadRebalancer is kept.
const rebalancerStays = 300

// again is the first pause before another request for what was placed by the state from before the
// clusters were uncordoned. Requests are distinguished by the second.
const again = 2 * time.Second

// Return requests a new placement for what drains have moved off clusters, and waits for the decisions.
type Return struct {
	Hub      client.Client
	Clusters []string
	Clock    clock.Clock
	// Out gets a line for each template, ErrOut which of them leave data behind.
	Out, ErrOut io.Writer
	// Timeout is how long Run waits at most.
	Timeout time.Duration
	// DryRun only prints what would be placed anew.
	DryRun bool

	volumes volumes
	// before are the bindings that were moved off the clusters when the drains ended.
	before []workv1alpha2.Binding
}

// Before remembers what drains have moved off clusters, just before the drains end. What runs wherever it may returns by itself then, and
// may have done so when Run looks.
func (r *Return) Before(ctx context.Context, hub client.Reader, clusters []string) error {
	r.before = nil
	was := Return{Clusters: clusters}
	return each(ctx, hub, func(b workv1alpha2.Binding) {
		if was.concerns(b) && placement.Everywhere(b.BindingSpec()) {
			r.before = append(r.before, b)
		}
	})
}

// returned returns those of what was moved before the drains ended that are not moved any more, and are there.
func (r *Return) returned(ctx context.Context, moved []workv1alpha2.Binding) ([]workv1alpha2.Binding, error) {
	var out []workv1alpha2.Binding
	for _, b := range r.before {
		if slices.ContainsFunc(moved, func(m workv1alpha2.Binding) bool { return m.GetUID() == b.GetUID() && titleOf(m) == titleOf(b) }) {
			continue
		}
		now := b.DeepCopyObject().(workv1alpha2.Binding)
		switch err := r.Hub.Get(ctx, client.ObjectKeyFromObject(b), now); {
		case client.IgnoreNotFound(err) != nil:
			return nil, err
		case err == nil && now.GetUID() == b.GetUID() && now.GetDeletionTimestamp() == nil:
			out = append(out, b)
		}
	}
	return out, nil
}

// Run makes the request and waits.
func (r *Return) Run(ctx context.Context) error {
	moved, err := r.moved(ctx)
	if err != nil {
		return err
	}
	returned, err := r.returned(ctx, moved)
	if err != nil {
		return err
	}
	all := byTitle(append(returned, moved...))
	if len(all) == 0 {
		return r.none(ctx)
	}
	if err := r.readVolumes(ctx, all); err != nil {
		return err
	}
	if r.DryRun {
		for _, b := range moved {
			if _, err := fmt.Fprintf(r.Out, "%s would be placed anew%s\n", titleOf(b), r.wouldLeave(b)); err != nil {
				return err
			}
		}
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, r.Timeout, fmt.Errorf("%w within %s: flotilla uncordon %s --return asks again", errNotPlaced, r.Timeout, strings.Join(r.Clusters, " ")))
	defer cancel()
	if len(moved) > 0 {
		if err := r.ask(ctx, moved); err != nil {
			return err
		}
	}
	return r.await(ctx, all)
}

var errNotPlaced = errors.New("not all is placed anew")

// moved returns the bindings that were moved off the clusters and may be brought back, by title.
func (r *Return) moved(ctx context.Context) ([]workv1alpha2.Binding, error) {
	var out []workv1alpha2.Binding
	err := each(ctx, r.Hub, func(b workv1alpha2.Binding) {
		if b.GetDeletionTimestamp() == nil && r.concerns(b) {
			out = append(out, b)
		}
	})
	return byTitle(out), err
}

func byTitle(all []workv1alpha2.Binding) []workv1alpha2.Binding {
	slices.SortFunc(all, func(a, b workv1alpha2.Binding) int { return strings.Compare(titleOf(a), titleOf(b)) })
	return all
}

// concerns reports whether a binding was moved off one of the clusters and was not placed anew since.
func (r *Return) concerns(b workv1alpha2.Binding) bool {
	record, _ := placement.RecordOf(b)
	return slices.ContainsFunc(record.Drained, func(name string) bool { return slices.Contains(r.Clusters, name) })
}

// none prints that no drain has moved anything, and what failover has.
func (r *Return) none(ctx context.Context) error {
	var rows []drain.Row
	err := each(ctx, r.Hub, func(b workv1alpha2.Binding) {
		record, _ := placement.RecordOf(b)
		off := record.LastMove.Tainted(b.BindingSpec())
		if of := &b.BindingSpec().Resource; slices.ContainsFunc(r.Clusters, func(name string) bool { return slices.Contains(off, name) }) {
			rows = append(rows, drain.Row{APIVersion: of.APIVersion, Kind: of.Kind, Namespace: of.Namespace, Name: of.Name})
		}
	})
	if err != nil {
		return err
	}
	drain.Sort(rows)
	text := "no drain has moved anything off " + strings.Join(r.Clusters, ", ") + " that is to be brought back"
	if len(rows) > 0 {
		text += "; what failover moved: flotilla rebalance " + drain.ObjectOf(&rows[0])
	}
	if more := len(rows) - 1; more > 0 {
		text += fmt.Sprintf("; the same of %d more: %s", more, rows[1].Title())
		if more > 1 {
			text += " …"
		}
	}
	_, err = fmt.Fprintln(r.Out, text)
	return err
}

// ask requests a new placement of templates.
func (r *Return) ask(ctx context.Context, moved []workv1alpha2.Binding) error {
	rebalancer := &appsv1alpha1.WorkloadRebalancer{ObjectMeta: metav1.ObjectMeta{GenerateName: "return-"}}
	rebalancer.Spec.TTLSecondsAfterFinished = ptr.To[int32](rebalancerStays)
	for _, b := range moved {
		of := &b.BindingSpec().Resource
		rebalancer.Spec.Workloads = append(rebalancer.Spec.Workloads, appsv1alpha1.ObjectReference{APIVersion: of.APIVersion, Kind: of.Kind, Namespace: of.Namespace, Name: of.Name})
	}
	if err := r.Hub.Create(ctx, rebalancer, client.FieldOwner("flotilla")); err != nil {
		return fmt.Errorf("ask for a new placement of what was moved: %w", err)
	}
	return nil
}

// await prints where each binding is placed, once it has been placed anew.
func (r *Return) await(ctx context.Context, moved []workv1alpha2.Binding) error {
	var faults []error
	asked, timeout := r.Clock.Now(), again
	for len(moved) > 0 {
		var rest []workv1alpha2.Binding
		for _, before := range moved {
			b := before.DeepCopyObject().(workv1alpha2.Binding)
			if err := r.Hub.Get(ctx, client.ObjectKeyFromObject(before), b); client.IgnoreNotFound(err) != nil {
				return r.wrong(ctx, err)
			} else if err != nil {
				continue // deleted meanwhile
			}
			over, err := r.report(before, b)
			if !over {
				rest = append(rest, before)
			}
			faults = append(faults, err)
		}
		if moved = rest; len(moved) == 0 {
			break
		}
		if r.Clock.Since(asked) >= timeout {
			asked, timeout = r.Clock.Now(), 2*timeout
			if err := r.ask(ctx, moved); err != nil {
				return r.wrong(ctx, err)
			}
		}
		select {
		case <-ctx.Done():
			return errors.Join(append(faults, context.Cause(ctx))...)
		case <-r.Clock.After(pause):
		}
	}
	return errors.Join(faults...)
}

func (r *Return) wrong(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// report prints where a binding is placed. It returns false if there is no new decision yet.
func (r *Return) report(before, b workv1alpha2.Binding) (bool, error) {
	record, _ := placement.RecordOf(b)
	was, _ := placement.RecordOf(before)
	switch {
	case !record.Succeeded() && record.At.After(was.At.Time):
		return true, fmt.Errorf("%s stays where it is: %s", titleOf(b), record.Message)
	case r.concerns(b):
		return false, nil
	}
	if err := r.warn(before, b); err != nil {
		return true, err
	}
	row := drain.Row{To: b.BindingSpec().Clusters}
	note := ""
	if !slices.ContainsFunc(row.To, func(t workv1alpha2.TargetCluster) bool { return slices.Contains(r.Clusters, t.Name) }) {
		of := &b.BindingSpec().Resource
		object := drain.ObjectOf(&drain.Row{APIVersion: of.APIVersion, Kind: of.Kind, Namespace: of.Namespace, Name: of.Name})
		note = fmt.Sprintf(", by what counts now: flotilla explain %s says why it is not in %s", object, strings.Join(r.Clusters, ", "))
	}
	_, err := fmt.Fprintf(r.Out, "%s is placed in %s%s\n", titleOf(b), row.Places(), note)
	return true, err
}

func titleOf(b workv1alpha2.Binding) string {
	of := &b.BindingSpec().Resource
	row := drain.Row{Kind: of.Kind, Namespace: of.Namespace, Name: of.Name}
	return row.Title()
}
