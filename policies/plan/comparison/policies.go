package comparison

import (
	"cmp"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/cascade"
	"github.com/flotilla-io/flotilla/policies/override"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/selector"
)

// policy is a propagation policy or an override.
type policy struct {
	metav1.Object
	kind string
	spec any
}

// title names the policy, such as "OverridePolicy shop/tag".
func (p policy) title() string {
	name := p.GetName()
	if p.GetAnnotations()[gitopsv1alpha1.HoldsSecretsAnnotation] == gitopsv1alpha1.HoldsInName {
		name = hidden
	}
	return p.kind + " " + strings.TrimPrefix(p.GetNamespace()+"/"+name, "/")
}

func (p policy) object() Object {
	return Object{APIVersion: policyv1alpha1.GroupVersion.String(), Kind: p.kind, Namespace: p.GetNamespace(), Name: p.GetName()}
}

// policyKey is the kind and the name of a policy.
type policyKey struct{ kind, namespace, name string }

func (k policyKey) compare(other policyKey) int {
	return cmp.Or(cmp.Compare(k.namespace, other.namespace), cmp.Compare(k.kind, other.kind), cmp.Compare(k.name, other.name))
}

// policiesOf returns all policies and overrides of a side.
func policiesOf(s Side) map[policyKey]policy {
	out := make(map[policyKey]policy, len(s.Fleet.Policies)+len(s.Fleet.Overrides))
	for _, p := range s.Fleet.Policies {
		kind := propagation.KindOf(p)
		out[policyKey{kind, p.GetNamespace(), p.GetName()}] = policy{p, kind, p.PropagationSpec()}
	}
	for _, o := range s.Fleet.Overrides {
		kind := policyv1alpha1.ResourceKindOverridePolicy
		if o.GetNamespace() == "" {
			kind = policyv1alpha1.ResourceKindClusterOverridePolicy
		}
		out[policyKey{kind, o.GetNamespace(), o.GetName()}] = policy{o, kind, o.OverrideSpec()}
	}
	return out
}

// policies are those of both sides.
type policies struct{ base, head map[policyKey]policy }

func (c *comparer) policies() policies { return policies{policiesOf(c.Base), policiesOf(c.Head)} }

// sorted returns the keys of those that are there after the change, sorted.
func (p policies) sorted() []policyKey {
	return slices.SortedFunc(maps.Keys(p.head), policyKey.compare)
}

// changed reports whether a policy is new, or says something else than before.
func (p policies) changed(key policyKey) bool {
	was, had := p.base[key]
	if !had {
		return true
	}
	return was.spec != p.head[key].spec && !equality.Semantic.DeepEqual(was.spec, p.head[key].spec)
}

// strangers adds the policies and overrides that name a cluster that nobody has, and did not before.
func (c *assessor) strangers() {
	all := c.policies()
	before, after := namesOf(c.Base.Fleet.Clusters), namesOf(remaining(c.Base.Fleet.Clusters, c.Head.Fleet.Clusters))
	fleet := slices.Equal(before, after)
	for _, key := range all.sorted() {
		if fleet && !all.changed(key) {
			continue
		}
		p := all.head[key]
		found := propagation.StrangersAmong(namedBy(p), after)
		if was, had := all.base[key]; had {
			known := propagation.StrangersAmong(namedBy(was), before)
			found = slices.DeleteFunc(found, func(s propagation.Stranger) bool {
				return slices.ContainsFunc(known, func(k propagation.Stranger) bool { return k.Name == s.Name })
			})
		}
		if len(found) > 0 {
			c.policyRisk(RiskUnknownCluster, p.title(), "%s: %s", p.title(), propagation.Naming(propagation.Redact(p, found)))
		}
	}
}

// namedBy returns the clusters that a policy or an override names.
func namedBy(p policy) []string {
	switch of := p.Object.(type) {
	case policyv1alpha1.Policy:
		return propagation.NamedClusters(of.PropagationSpec())
	case policyv1alpha1.Override:
		return override.NamedClusters(of)
	default:
		return nil
	}
}

// remaining returns the clusters after a change without those that leave the fleet by it.
func remaining(before, after []*clusterv1alpha1.Cluster) []*clusterv1alpha1.Cluster {
	return slices.DeleteFunc(slices.Clone(after), func(c *clusterv1alpha1.Cluster) bool {
		return c.DeletionTimestamp != nil && slices.ContainsFunc(before, func(was *clusterv1alpha1.Cluster) bool { return was.Name == c.Name && was.DeletionTimestamp == nil })
	})
}

func namesOf(clusters []*clusterv1alpha1.Cluster) []string {
	out := make([]string, len(clusters))
	for i, c := range clusters {
		out[i] = c.Name
	}
	slices.Sort(out)
	return out
}

// taking is a policy that takes templates, and the one that it takes them from; empty for those that none carried.
type taking struct{ by, from string }

// takeovers adds policies that take templates of others.
func (c *assessor) takeovers() {
	all := c.policies()
	found := map[taking][]identity{}
	for id, head := range c.head.plans {
		base := c.base.plans[id]
		if base == nil || head.Policy == nil {
			continue
		}
		by := keyOf(head.Policy)
		switch {
		case base.Policy == nil:
			if all.changed(by) && c.untouched(id) && ownerOf(head.Policy.GetLabels()) != ownerOf(head.Resource.Labels) {
				found[taking{by: all.head[by].title()}] = append(found[taking{by: all.head[by].title()}], id)
			}
		case keyOf(base.Policy) != by:
			from, stays := all.head[keyOf(base.Policy)]
			if stays && from.GetDeletionTimestamp() == nil {
				t := taking{all.head[by].title(), from.title()}
				found[t] = append(found[t], id)
			}
		}
	}
	for t, ids := range found {
		slices.SortFunc(ids, identity.compare)
		titles := make([]string, len(ids))
		for i, id := range ids {
			titles[i] = c.object(id).String()
		}
		if t.from == "" {
			c.policyRisk(RiskTakesOver, t.by, "%s carries %s, which others own and this change does not touch: %s", t.by, counted(len(ids), "template"), cascade.Describe(titles))
			continue
		}
		c.policyRisk(RiskTakesOver, t.by, "%s takes %s from %s: %s", t.by, counted(len(ids), "template"), t.from, cascade.Describe(titles))
	}
}

func keyOf(p policyv1alpha1.Policy) policyKey {
	return policyKey{propagation.KindOf(p), p.GetNamespace(), p.GetName()}
}

// untouched reports whether a template is the same before and after the change.
func (c *assessor) untouched(id identity) bool {
	was, is := c.base.templates[id], c.head.templates[id]
	if was == nil || is == nil || was == is {
		return was == is
	}
	was, is = was.DeepCopy(), is.DeepCopy()
	propagation.Unclaim(was)
	propagation.Unclaim(is)
	return reflect.DeepEqual(was.Object, is.Object)
}

// idlePolicies adds the policies that carry nothing, and are new, have changed, or carried something before.
func (c *assessor) idlePolicies() {
	before, after := carried(c.Base.Plans), carried(c.Head.Plans)
	all := c.policies()
	for _, key := range all.sorted() {
		p := all.head[key]
		if _, is := p.Object.(policyv1alpha1.Policy); !is || after[key] > 0 || p.GetDeletionTimestamp() != nil {
			continue
		}
		switch {
		case before[key] > 0:
			c.policyRisk(RiskIdlePolicy, p.title(), "%s carries nothing any more: it carried %s", p.title(), counted(before[key], "template"))
		case all.changed(key):
			c.policyRisk(RiskIdlePolicy, p.title(), "%s carries nothing: it selects no template, or others carry those that it selects", p.title())
		}
	}
}

// carried counts the templates of each policy.
func carried(plans []plan.TemplatePlan) map[policyKey]int {
	out := map[policyKey]int{}
	for i := range plans {
		if p := plans[i].Policy; p != nil {
			out[keyOf(p)]++
		}
	}
	return out
}

// trials apply overrides, to see what they change.
type trials struct{ *comparer }

// idle adds the overrides that are new or have changed, and change nothing in any cluster.
func (c *trials) idle() {
	all := c.policies()
	for _, key := range all.sorted() {
		p := all.head[key]
		o, is := p.Object.(policyv1alpha1.Override)
		if !is || !all.changed(key) || p.GetDeletionTimestamp() != nil {
			continue
		}
		switch c.reach(o) {
		case reachesNothing:
			c.policyRisk(RiskIdleOverride, p.title(), "%s changes nothing: no template that it selects goes to a cluster that it means", p.title())
		case changesNothing:
			c.policyRisk(RiskIdleOverride, p.title(), "%s changes nothing: what it sets is there without it", p.title())
		}
	}
}

// effect of an override.
type effect int

const (
	reachesNothing effect = iota
	changesNothing
	changesSomething
)

// mostTried is on how many manifests an override is tried before it counts as one that changes something.
const mostTried = 200

// reach returns what an override changes after the change.
func (c *trials) reach(o policyv1alpha1.Override) effect {
	out, tried := reachesNothing, 0
	for i := range c.Head.Plans {
		p := &c.Head.Plans[i]
		if o.GetNamespace() != "" && o.GetNamespace() != p.Resource.Namespace {
			continue
		}
		for j := range p.Works {
			w := &p.Works[j]
			if misfits(w.Err, o) {
				return changesSomething // it is reported as one that fails
			}
			if !applied(w.Applied, o) {
				continue
			}
			if tried++; tried > mostTried || c.does(o, p, w.Cluster) {
				return changesSomething
			}
			out = changesNothing
		}
	}
	return out
}

func misfits(err error, o policyv1alpha1.Override) bool {
	var misfit *override.Error
	return errors.As(err, &misfit) && misfit.Policy == strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/")
}

func applied(a override.Applied, o policyv1alpha1.Override) bool {
	items := a.Namespaced
	if o.GetNamespace() == "" {
		items = a.Cluster
	}
	return slices.ContainsFunc(items, func(item override.Item) bool { return item.PolicyName == o.GetName() })
}

// does reports whether an override changes the manifest of a template for a cluster. It counts as doing so where that
// cannot be told.
func (c *trials) does(o policyv1alpha1.Override, p *plan.TemplatePlan, name string) bool {
	template := c.head.templates[identityOf(p.Resource.APIVersion, p.Resource.Kind, p.Resource.Namespace, p.Resource.Name)]
	at := slices.IndexFunc(c.Head.Fleet.Clusters, func(cluster *clusterv1alpha1.Cluster) bool { return cluster.Name == name })
	if template == nil || at < 0 {
		return true
	}
	in := plan.WorksInput{Binding: p.Binding, Template: template, Interpreter: c.Head.Fleet.Interpreter}
	manifest, err := in.Manifest(name)
	if err != nil {
		return true
	}
	before, changes := manifest.DeepCopy(), false
	_, err = override.Matching(c.Head.Fleet.Overrides, selector.ResourceOf(template)).Follow(manifest, c.Head.Fleet.Clusters[at], func(by policyv1alpha1.Override, _ int) {
		if by.GetNamespace() == o.GetNamespace() && by.GetName() == o.GetName() {
			changes = changes || !plan.SameObject(before, manifest)
		}
		before = manifest.DeepCopy()
	})
	return err != nil || changes
}
