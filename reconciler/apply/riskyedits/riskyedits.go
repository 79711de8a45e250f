// Package riskyedits decides which edits of policies and Clusters in a revision are refused, as they would remove objects from
// clusters, or undo overrides there, by what looks like a mistake (package riskyedit of policies says what does).
//
// In go the changes of a revision and what the control plane has; out comes a refusal that names each such policy or
// Cluster, with what would be lost where. For precious objects it need not look like a mistake. It is one to take along
// no more (propagateDeps) what templates still refer to. What people have allowed by name is not refused. It reads Clusters, policies, bindings and labels of templates. It writes only an
// annotation on the Works of volume claims whose deletion people have allowed.
package riskyedits

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/interpreter"
	"github.com/flotilla-io/flotilla/policies/riskyedit"
	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// mostNamed is how many policies, and how many objects of each, a refusal names.
const mostNamed = 3

// Revision is what is checked.
type Revision struct {
	// Name of the revision.
	Name string
	// Changes are the plan for all objects of the revision, and Seen what the hub has of them.
	Changes []applier.Change
	Seen    applier.Observed
	// Labels returns the labels of templates that are not in the revision, by which policies select them; if nil, none
	// are known.
	Labels Labels
	// Removed is what leaves with the revision.
	Removed []inventory.ID
	// Allowed is what people have allowed to be deleted.
	Allowed inventory.Allowance
}

// ReasonUnknownCluster says that a policy of the revision names a cluster that does not exist, and would remove objects
// from others.
const ReasonUnknownCluster = policyv1alpha1.PolicyReasonUnknownCluster

// Refusal is an error that names what a revision would remove from clusters.
type Refusal struct {
	text    string
	unknown bool
}

// Error implements error.
func (r *Refusal) Error() string { return r.text }

// Reason returns ReasonUnknownCluster if that is the cause of every finding, and else inventory.ReasonPruneBlocked.
func (r *Refusal) Reason() string {
	if r.unknown {
		return ReasonUnknownCluster
	}
	return inventory.ReasonPruneBlocked
}

// Check returns a *Refusal if a revision would remove something from clusters by what looks like a mistake, or
// something precious, unless people have allowed it. hub reads from a cache.
func Check(ctx context.Context, hub client.Reader, r Revision) error {
	var found []finding
	c := check{hub: hub, revision: r}
	for _, change := range r.Changes {
		if !change.Writes() {
			continue
		}
		lost, err := c.lossesBy(ctx, change.Desired)
		if err != nil {
			return err
		}
		found = append(found, lost...)
	}
	lost, err := takeovers{&c}.losses(ctx)
	if err := errors.Join(err, c.others.unread); err != nil {
		return err
	}
	return refusal(append(found, lost...), r)
}

// finding is what one policy, or the edit of a Cluster, would remove.
type finding struct {
	policy  inventory.ID
	mistake string
	// unknown says that the mistake is to name clusters that do not exist.
	unknown bool
	// does is the verb and the objects of the text, such as "take 2 objects out of".
	does     string
	clusters []string
	// precious are the names of objects that have to be allowed by name; nil if to allow the revision is enough.
	precious []string
}

// trailer returns the names that allow a finding in a commit message: the precious objects, or the policy if there
// are none or more than mostNamed.
func (f finding) trailer(may inventory.Allowance) []string {
	if n := len(f.precious); n > 0 && n <= mostNamed {
		return f.precious
	}
	return []string{may.NameOf(f.policy)}
}

// refusal returns a *Refusal with all findings; nil for none.
func refusal(found []finding, r Revision) error {
	if len(found) == 0 {
		return nil
	}
	var texts []string
	for _, f := range found {
		texts = append(texts, fmt.Sprintf("%s: %s would %s %s", f.mistake, inventory.Describe(f.policy), f.does, strings.Join(f.clusters, ", ")))
	}
	text := strings.Join(texts[:min(len(texts), mostNamed)], "; ")
	if more := len(texts) - mostNamed; more > 0 {
		text += fmt.Sprintf("; and %d more policies do so", more)
	}
	out := &Refusal{unknown: true}
	var words, names []string
	for _, f := range found {
		words = append(words, cmp.Or(strings.Join(f.precious, ", "), r.Name))
		names = append(names, f.trailer(r.Allowed)...)
		out.unknown = out.unknown && f.unknown
	}
	slices.Sort(words)
	out.text = fmt.Sprintf("%s; revision %s is not applied: correct it, or allow it with %s",
		text, r.Name, inventory.HowToAllow(strings.Join(slices.Compact(words), ", "), r.Allowed.Trailer(names)))
	return out
}

// check is one run of Check. It reads everything at most once, and only if needed.
type check struct {
	hub      client.Reader
	revision Revision
	fleet    []*clusterv1alpha1.Cluster
	world    *world
	// bound are all bindings, precious those of precious kinds, and along those of what goes along with others.
	bound           map[client.ObjectKey]workv1alpha2.Binding
	precious, along []workv1alpha2.Binding
	// users are what is known so far of templates with which others go along, and rules what these refer to; nil before.
	users  map[client.ObjectKey]user
	rules  *interpreter.Interpreter
	others others
}

// lossesBy returns what an object of the revision would remove, without what people have allowed.
func (c *check) lossesBy(ctx context.Context, desired *unstructured.Unstructured) ([]finding, error) {
	if desired.GroupVersionKind().Group != policyv1alpha1.GroupVersion.Group && !isCluster(desired) {
		return nil, nil
	}
	if err := c.readFleet(ctx); err != nil {
		return nil, err
	}
	id, all := inventory.IDOf(desired), []finding{}
	if !c.revision.Allowed.Lets(id) {
		mistaken, err := c.mistakenBy(ctx, id, desired)
		if err != nil {
			return nil, err
		}
		all = append(all, mistaken)
	}
	if propagationOf(desired) != nil {
		precious, err := c.preciousBy(ctx, id)
		if err != nil {
			return nil, err
		}
		withdrawn, err := withdrawals{c}.losses(ctx, id)
		if err != nil {
			return nil, err
		}
		all = append(all, precious, withdrawn)
	}
	return slices.DeleteFunc(all, func(f finding) bool { return len(f.clusters) == 0 }), nil
}

// mistakenBy returns what an object of the revision would remove by what looks like a mistake.
func (c *check) mistakenBy(ctx context.Context, id inventory.ID, desired *unstructured.Unstructured) (finding, error) {
	if isCluster(desired) {
		return c.relabelled(ctx, id)
	}
	if after := propagationOf(desired); after != nil && riskyedit.Suspect(after.PropagationSpec(), c.fleet) {
		return c.takenOut(ctx, id)
	}
	before, after := overrideOf(c.revision.Seen[id]), overrideOf(desired)
	switch {
	case after == nil:
		return finding{}, nil
	case before == nil:
		return renames{c}.losses(ctx, id, after)
	}
	loss := riskyedit.Override(before.OverrideSpec(), after.OverrideSpec(), c.fleet)
	if loss.Mistake == "" {
		return finding{}, nil
	}
	return c.takenBack(ctx, id, before, after, loss)
}

func (c *check) readFleet(ctx context.Context) error {
	if c.fleet != nil {
		return nil
	}
	var list clusterv1alpha1.ClusterList
	if err := c.hub.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list clusters: %w", err)
	}
	c.fleet = make([]*clusterv1alpha1.Cluster, 0, len(list.Items))
	for i := range list.Items {
		c.fleet = append(c.fleet, &list.Items[i])
	}
	return nil
}

// summary collects the names of objects and of the clusters that would lose them.
type summary struct {
	objects  []string
	clusters []string
}

func (t *summary) add(b workv1alpha2.Binding, clusters []string) {
	if len(clusters) == 0 {
		return
	}
	t.objects = append(t.objects, titleOf(b.BindingSpec().Resource))
	t.clusters = append(t.clusters, clusters...)
	slices.Sort(t.clusters)
	t.clusters = slices.Compact(t.clusters)
}

// titleOf names an object for people.
func titleOf(of workv1alpha2.ObjectReference) string {
	return of.Kind + " " + strings.TrimPrefix(of.Namespace+"/"+of.Name, "/")
}

// String returns a text such as "2 objects (ConfigMap shop/cfg, Deployment shop/web)".
func (t *summary) String() string {
	slices.Sort(t.objects)
	named := strings.Join(t.objects[:min(len(t.objects), mostNamed)], ", ")
	if len(t.objects) > mostNamed {
		named += ", …"
	}
	if len(t.objects) == 1 {
		return "1 object (" + named + ")"
	}
	return fmt.Sprintf("%d objects (%s)", len(t.objects), named)
}
