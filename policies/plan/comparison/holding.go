package comparison

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/policies/propagation"
)

// identity is what makes two templates, and two objects in a cluster, the same: not the version of their API, and not
// who owns them.
type identity struct{ namespace, group, kind, name string }

func (i identity) compare(other identity) int {
	return cmp.Or(cmp.Compare(i.namespace, other.namespace), cmp.Compare(i.kind, other.kind), cmp.Compare(i.name, other.name), cmp.Compare(i.group, other.group))
}

// String returns a text that no other identity has. It is not for people: a name may be hidden.
func (i identity) String() string {
	return strings.Join([]string{i.namespace, i.group, i.kind, i.name}, "\x00")
}

func (i identity) groupKind() schema.GroupKind { return schema.GroupKind{Group: i.group, Kind: i.kind} }

func identityOf(apiVersion, kind, namespace, name string) identity {
	return identity{namespace, schema.FromAPIVersionAndKind(apiVersion, kind).Group, kind, name}
}

// index is one side of a change, for look-up.
type index struct {
	plans     map[identity]*plan.TemplatePlan
	templates map[identity]*unstructured.Unstructured
	// bindings of today, by template.
	bindings map[identity]workv1alpha2.Binding
}

func newIndex(s Side) index {
	out := index{
		plans:     make(map[identity]*plan.TemplatePlan, len(s.Plans)),
		templates: make(map[identity]*unstructured.Unstructured, len(s.Fleet.Templates)),
		bindings:  make(map[identity]workv1alpha2.Binding, len(s.Fleet.Bindings)),
	}
	for i := range s.Plans {
		r := &s.Plans[i].Resource
		out.plans[identityOf(r.APIVersion, r.Kind, r.Namespace, r.Name)] = &s.Plans[i]
	}
	for _, t := range s.Fleet.Templates {
		out.templates[identityOf(t.GetAPIVersion(), t.GetKind(), t.GetNamespace(), t.GetName())] = t
	}
	for _, b := range s.Fleet.Bindings {
		of := b.BindingSpec().Resource
		out.bindings[identityOf(of.APIVersion, of.Kind, of.Namespace, of.Name)] = b
	}
	return out
}

// content is what a cluster holds, or should, of a template.
type content struct {
	// raw is the manifest; nil where it is not known.
	raw []byte
	// work is the permanent id of the Work, which is another one in each cluster, as its namespace is.
	work, space          string
	suspended, preserved bool
	// err is why nothing could be made for the cluster.
	err error
}

// holding is what clusters hold of one template.
type holding struct {
	plan *plan.TemplatePlan
	in   map[string]content
	// targets are where it is placed, with replicas.
	targets []workv1alpha2.TargetCluster
	// undecided means that nothing was decided about it: what is there stays.
	undecided bool
}

// clusters returns those that hold it, sorted.
func (h *holding) clusters() []string { return union(h.in, nil) }

// holding returns what clusters hold by a plan, which may be nil.
func (x *index) holding(p *plan.TemplatePlan) holding {
	out := holding{plan: p, in: map[string]content{}}
	if p == nil || p.Dropped {
		return out
	}
	if out.undecided = p.Works == nil; out.undecided {
		b := p.Binding
		if b == nil {
			b = x.bindings[identityOf(p.Resource.APIVersion, p.Resource.Kind, p.Resource.Namespace, p.Resource.Name)]
		}
		if b == nil {
			return out
		}
		out.targets = plan.Targets(plan.SpecOf(b))
		for _, t := range out.targets {
			out.in[t.Name] = content{}
		}
		return out
	}
	out.targets = plan.Targets(plan.SpecOf(p.Binding))
	for i := range p.Works {
		w := &p.Works[i]
		if w.Work == nil {
			out.in[w.Cluster] = content{err: w.Err}
			continue
		}
		out.in[w.Cluster] = content{
			raw: w.Work.Spec.Workload.Manifests[0].Raw, work: w.Work.Labels[workv1alpha2.WorkPermanentIDLabel], space: w.Work.Namespace,
			suspended: ptr.Deref(w.Work.Spec.SuspendDispatching, false), preserved: ptr.Deref(w.Work.Spec.PreserveResourcesOnDeletion, false),
		}
	}
	return out
}

// keeps reports whether a template that leaves a cluster is never purged from it.
func (x *index) keeps(id identity, cluster string) bool {
	p := x.plans[id]
	if p == nil || p.Binding == nil {
		return false
	}
	return slices.ContainsFunc(p.Binding.BindingSpec().GracefulEvictionTasks, func(t workv1alpha2.GracefulEvictionTask) bool {
		return t.FromCluster == cluster && t.PurgeMode == policyv1alpha1.PurgeModeNever
	})
}

// whyHeld is why nothing is decided about a template.
func whyHeld(p *plan.TemplatePlan) string {
	switch {
	case p.Err != nil:
		return p.Err.Error()
	case p.Outcome == propagation.Released:
		return "no policy carries it any more (" + p.Why + "): what runs, runs on"
	default:
		return p.Why
	}
}

// object names a template, as it is after the change where it is there then.
func (c *comparer) object(id identity) Object {
	p := c.head.plans[id]
	template := c.head.templates[id]
	if p == nil {
		p, template = c.base.plans[id], c.base.templates[id]
	}
	out := Object{APIVersion: p.Resource.APIVersion, Kind: p.Resource.Kind, Namespace: p.Resource.Namespace, Name: p.Resource.Name, Kustomization: ownerOf(p.Resource.Labels)}
	if template != nil && template.GetAnnotations()[gitopsv1alpha1.HoldsSecretsAnnotation] == gitopsv1alpha1.HoldsInName {
		out.Name = hidden
	}
	return out
}

// Labels by which an object names the Kustomization that applies it. They are Flux's.
const (
	ownerName      = "kustomize.toolkit.fluxcd.io/name"
	ownerNamespace = "kustomize.toolkit.fluxcd.io/namespace"
)

// ownerOf returns the Kustomization in labels as NAMESPACE/NAME; empty for none.
func ownerOf(labels map[string]string) string {
	if labels[ownerName] == "" || labels[ownerNamespace] == "" {
		return ""
	}
	return labels[ownerNamespace] + "/" + labels[ownerName]
}
