package comparison

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla-io/flotilla/policies/interpreter/running"
	"github.com/flotilla-io/flotilla/policies/override"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/policies/placement/unplaced"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/policies/quota"
)

// assessor looks at a change as a whole, once all templates were compared.
type assessor struct{ *comparer }

// assess adds everything that is risky about the change.
func (c *assessor) assess() {
	c.cascades()
	c.brakes()
	c.concentrated()
	c.unplaced()
	c.quotas()
	c.strangers()
	c.takeovers()
	c.idlePolicies()
	(&trials{c.comparer}).idle()
}

// reasons are all of risks, the worst first.
var reasons = []string{
	RiskNamespace, RiskDefinition, RiskVolume, RiskBuild, RiskShared, RiskDependency, RiskNotTaken, RiskBrake, RiskNotFollowed, RiskOneCluster, RiskNotPlaced, RiskQuota, RiskNotMade, RiskOverrideFails,
	RiskUnknownCluster, RiskTakesOver, RiskImages, RiskIdlePolicy, RiskIdleOverride,
}

func sortedRisks(risks []Risk) []Risk {
	name := func(r Risk) Object {
		if r.Object == nil {
			return Object{}
		}
		return *r.Object
	}
	for i := range risks {
		slices.Sort(risks[i].Clusters)
	}
	slices.SortFunc(risks, func(a, b Risk) int {
		return cmp.Or(cmp.Compare(slices.Index(reasons, a.Reason), slices.Index(reasons, b.Reason)), compareObjects(name(a), name(b)),
			cmp.Compare(a.Policy, b.Policy), cmp.Compare(a.Message, b.Message))
	})
	return risks
}

func (c *comparer) risk(reason string, id identity, clusters []string, format string, args ...any) {
	of := c.object(id)
	c.risks = append(c.risks, Risk{Reason: reason, Object: &of, Clusters: clusters, Message: fmt.Sprintf(format, args...)})
}

func (c *comparer) policyRisk(reason, policy, format string, args ...any) {
	c.risks = append(c.risks, Risk{Reason: reason, Policy: policy, Message: fmt.Sprintf(format, args...)})
}

// cascades adds deletions by which more goes than is listed.
func (c *assessor) cascades() {
	for i := range c.out.Changes {
		change := &c.out.Changes[i]
		if change.Action != Deleted || change.Kind != "PersistentVolumeClaim" || change.APIVersion != "v1" {
			continue
		}
		of := change.Object
		c.risks = append(c.risks, Risk{Reason: RiskVolume, Object: &of, Clusters: slices.Clone(change.Clusters), Message: fmt.Sprintf("%s is deleted in %s, with its data", of, counted(len(change.Clusters), "cluster"))})
	}
	for _, id := range slices.SortedFunc(maps.Keys(c.base.plans), identity.compare) {
		if c.head.plans[id] != nil {
			continue
		}
		was := c.base.holding(c.base.plans[id])
		switch id.groupKind() {
		case schema.GroupKind{Kind: "Namespace"}:
			within := c.within(func(other identity) bool { return other.namespace == id.name })
			c.risk(RiskNamespace, id, was.clusters(), "Namespace %s is deleted with all that is in it%s", c.object(id).Name, among(within))
		case schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:
			of := definedBy(c.base.templates[id])
			within := c.within(func(other identity) bool { return other.groupKind() == of })
			c.risk(RiskDefinition, id, was.clusters(), "CustomResourceDefinition %s is deleted with all objects of its kind%s", c.object(id).Name, among(within))
		}
	}
}

// among says how many templates are among what goes.
func among(templates int) string {
	if templates == 0 {
		return ""
	}
	return ", " + counted(templates, "template") + " among them"
}

// within counts the templates before the change that fit.
func (c *assessor) within(fits func(identity) bool) int {
	n := 0
	for id := range c.base.plans {
		if fits(id) {
			n++
		}
	}
	return n
}

// definedBy returns the kind that a CustomResourceDefinition defines.
func definedBy(definition *unstructured.Unstructured) schema.GroupKind {
	if definition == nil {
		return schema.GroupKind{}
	}
	group, _, _ := unstructured.NestedString(definition.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "kind")
	return schema.GroupKind{Group: group, Kind: kind}
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// concentrated adds workloads that ran in several clusters and run in one.
func (c *assessor) concentrated() {
	for i := range c.placements {
		p := &c.placements[i]
		id := identityOf(p.APIVersion, p.Kind, p.Namespace, p.Name)
		base, head := c.base.plans[id], c.head.plans[id]
		if base == nil || head == nil || running.Of(id.groupKind()) != running.Runs {
			continue
		}
		was, is := c.base.holding(base), c.head.holding(head)
		if len(was.targets) > 1 && len(is.targets) == 1 && !is.undecided {
			c.risk(RiskOneCluster, id, []string{is.targets[0].Name}, "%s ran in %d clusters, and will run in one", p.Object, len(was.targets))
		}
	}
}

// unplaced adds templates that find no cluster, or from which nothing can be made.
func (c *assessor) unplaced() {
	for id, head := range c.head.plans {
		base := c.base.plans[id]
		if head.Err == nil {
			c.stuck(id, base, head)
			continue
		}
		if base != nil && base.Err != nil && base.Err.Error() == head.Err.Error() {
			continue
		}
		if slices.ContainsFunc(c.held, func(h Held) bool { return h.Object == c.object(id) }) {
			continue // what clusters have stays, as is listed
		}
		reason := RiskNotMade
		if head.Binding != nil {
			if record, ok := placement.RecordOf(head.Binding); ok && !record.Succeeded() {
				reason = RiskNotPlaced
			}
		}
		c.risk(reason, id, nil, "%s: %v", c.object(id), head.Err)
	}
}

// stuck adds a template that has to leave clusters and has no other place, where it had not to before.
func (c *assessor) stuck(id identity, base, head *plan.TemplatePlan) {
	stays := staysOf(head)
	if was := staysOf(base); stays == nil || was != nil && was.Of == stays.Of {
		return
	}
	c.risk(RiskNotPlaced, id, slices.Clone(stays.Clusters), "%s: %s", c.object(id), strings.TrimSuffix(stays.Message, "."))
}

// staysOf is what a plan says that a template has to leave and cannot; nil for nothing.
func staysOf(p *plan.TemplatePlan) *unplaced.Stays {
	if p == nil || p.Binding == nil {
		return nil
	}
	record, _ := placement.RecordOf(p.Binding)
	return record.Stays
}

// fault adds why nothing can be made for a cluster, which keeps what it has.
func (d *differ) fault(cluster string, err error) {
	reason, policy := RiskNotMade, ""
	var beyond *plan.BeyondQuotaError
	var misfit *override.Error
	switch {
	case errors.As(err, &beyond):
		reason = RiskQuota
	case errors.As(err, &misfit):
		reason, policy = RiskOverrideFails, misfit.Policy
	}
	message := fmt.Sprintf("%s cannot be made, and stays as it is: %v", d.object, err)
	for i := range d.risks {
		if r := &d.risks[i]; r.Reason == reason && r.Message == message {
			r.Clusters = append(r.Clusters, cluster)
			return
		}
	}
	of := d.object
	d.risks = append(d.risks, Risk{Reason: reason, Object: &of, Policy: policy, Clusters: []string{cluster}, Message: message})
}

// quotas adds the FederatedResourceQuotas that do not allow what all templates of their namespace use more.
func (c *assessor) quotas() {
	if len(c.Head.Fleet.Quotas) == 0 {
		return
	}
	before, after := usage(c.Base.Plans), usage(c.Head.Plans)
	for _, q := range c.Head.Fleet.Quotas {
		err := quota.Check(q, before[q.Namespace], quota.Growth(before[q.Namespace], after[q.Namespace]))
		if err != nil {
			c.policyRisk(RiskQuota, "FederatedResourceQuota "+q.Namespace+"/"+q.Name, "%v", err)
		}
	}
}

// usage is what the placed templates of each namespace use.
func usage(plans []plan.TemplatePlan) map[string]corev1.ResourceList {
	out := map[string]corev1.ResourceList{}
	for i := range plans {
		p := &plans[i]
		if p.Binding == nil {
			continue
		}
		if out[p.Resource.Namespace] == nil {
			out[p.Resource.Namespace] = corev1.ResourceList{}
		}
		quota.Add(out[p.Resource.Namespace], quota.Usage(p.Binding.BindingSpec()))
	}
	return out
}

// kustomizationTitle is before the name of a Kustomization.
const kustomizationTitle = "Kustomization "

// owned is what a Kustomization owns before a change, and what of it is gone after it.
type owned struct{ all, gone []Object }

// brakes adds the Kustomizations that lose more than they may.
func (c *assessor) brakes() {
	if c.Brake == nil {
		return
	}
	owners := map[string]*owned{}
	note := func(owner string, of Object, stays bool) {
		if owner == "" {
			return
		}
		if owners[owner] == nil {
			owners[owner] = &owned{}
		}
		of.Kustomization = owner
		owners[owner].all = append(owners[owner].all, of)
		if !stays {
			owners[owner].gone = append(owners[owner].gone, of)
		}
	}
	for id, p := range c.base.plans {
		note(ownerOf(p.Resource.Labels), c.object(id), c.head.plans[id] != nil)
	}
	head := policiesOf(c.Head)
	for title, p := range policiesOf(c.Base) {
		_, stays := head[title]
		note(ownerOf(p.GetLabels()), p.object(), stays)
	}
	for _, name := range slices.Sorted(maps.Keys(owners)) {
		o := owners[name]
		if len(o.gone) == 0 {
			continue
		}
		slices.SortFunc(o.all, compareObjects)
		slices.SortFunc(o.gone, compareObjects)
		if why := c.Brake(Removal{Kustomization: name, Owned: o.all, Gone: o.gone}); why != "" {
			c.policyRisk(RiskBrake, kustomizationTitle+name, "%s", why)
		}
	}
}
