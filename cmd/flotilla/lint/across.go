package lint

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/placement/replicas"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/selector"
)

// template is an object that policies may propagate.
type template struct {
	selector.Resource
	replicas  int64
	divisible bool // it sets its number of replicas
}

// across runs the checks that need all objects together.
func (l *linter) across() {
	l.duplicates()
	alerts(l)
	templates, made := templatesIn(l.objects), templatesIn(l.made)
	policies := policiesIn(l.made)
	for _, o := range l.objects {
		p, isPolicy := o.value.(policyv1alpha1.Policy)
		if !isPolicy {
			continue
		}
		policies = append(policies, p)
		l.dependents(o, p)
		l.replicas(o, p, templates)
		selected := func(t template) bool { return l.selects(p, t.Resource) }
		if len(templates) > 0 && !slices.ContainsFunc(templates, selected) && !slices.ContainsFunc(made, selected) {
			l.add(o, Warning, "spec.resourceSelectors", "selects no template in these files: correct a selector, or ignore this if its templates are elsewhere")
		}
	}
	needs(l, policies, slices.Concat(templates, made))
	keeps(l, policies)
}

// all returns the objects in the files and those that are built from them.
func all(l *linter) []*object { return slices.Concat(l.objects, l.made) }

// policiesIn returns the policies among objects.
func policiesIn(objects []*object) []policyv1alpha1.Policy {
	var out []policyv1alpha1.Policy
	for _, o := range objects {
		if p, isPolicy := o.value.(policyv1alpha1.Policy); isPolicy {
			out = append(out, p)
		}
	}
	return out
}

// duplicates reports objects that occur twice, in whatever version.
func (l *linter) duplicates() {
	first := map[string]*object{}
	for _, o := range l.objects {
		if o.name == "" || o.patch {
			continue
		}
		namespace := o.namespace
		if namespace == "" {
			namespace = l.opts.Namespace // also if the scope of the kind is not known
		}
		id := strings.Join([]string{o.gvk.Group, o.gvk.Kind, namespace, o.name}, "\x00")
		before := first[id]
		switch {
		case before == nil:
			first[id] = o
		case before.kustomize || o.kustomize:
			l.add(o, Warning, "", fmt.Sprintf("is there twice: the first is in %s, line %d; there are kustomizations: check what kustomize builds instead", before.file, before.doc.Line))
		default:
			l.add(o, Error, "", fmt.Sprintf("is there twice: the first is in %s, line %d; remove one", before.file, before.doc.Line))
		}
	}
}

// templatesIn returns the objects that policies may propagate.
func templatesIn(objects []*object) []template {
	var out []template
	for _, o := range objects {
		if r := selector.ResourceOf(&unstructured.Unstructured{Object: o.doc.Fields}); o.name != "" && !o.patch && propagation.Propagates(r, propagation.SkipRules{}) {
			replicas, found, err := unstructured.NestedInt64(o.doc.Fields, "spec", "replicas")
			out = append(out, template{Resource: r, replicas: replicas, divisible: found && err == nil})
		}
	}
	return out
}

// replicas reports templates with fewer replicas than the clusters among which a policy would
// divide them.
func (l *linter) replicas(o *object, p policyv1alpha1.Policy, templates []template) {
	placement := &p.PropagationSpec().Placement
	if replicas.Duplicates(placement.ReplicaScheduling) || replicas.Static(placement.ReplicaScheduling) { // then constraints do not count
		return
	}
	for i, c := range placement.SpreadConstraints {
		if c.SpreadByField != policyv1alpha1.SpreadByFieldCluster {
			continue
		}
		for _, t := range templates {
			if t.divisible && t.replicas < int64(c.MinGroups) && l.selects(p, t.Resource) {
				l.add(o, Warning, fmt.Sprintf("spec.placement.spreadConstraints[%d].minGroups", i),
					fmt.Sprintf("%s %s has %s for at least %d clusters: raise its replicas, or lower minGroups", t.Kind, t.Name, counted(t.replicas, "replica"), c.MinGroups))
			}
		}
	}
}

func counted(n int64, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}

// selects reports whether a policy selects a template. A template without a namespace is tried
// both without one and in that of the options: only the server knows its scope.
func (l *linter) selects(p policyv1alpha1.Policy, r selector.Resource) bool {
	if propagation.Selects(p, r) {
		return true
	}
	if r.Namespace != "" {
		return false
	}
	r.Namespace = l.opts.Namespace
	return propagation.Selects(p, r)
}

// dependents reports missing overrides for which a policy waits.
func (l *linter) dependents(o *object, p policyv1alpha1.Policy) {
	for i, name := range p.PropagationSpec().DependentOverrides {
		there := slices.ContainsFunc(l.objects, func(other *object) bool {
			override, is := other.value.(policyv1alpha1.Override)
			return is && override.GetName() == name && override.GetNamespace() == p.GetNamespace()
		})
		if !there && name != "" {
			l.add(o, Warning, fmt.Sprintf("spec.dependentOverrides[%d]", i),
				fmt.Sprintf("the override %s is not in these files, and the policy waits for it: add it, or ignore this if it is elsewhere", name))
		}
	}
}
