package propagation

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/selector"
)

// SkipRules are what is not propagated in addition to what never is.
type SkipRules struct {
	namespaces []*regexp.Regexp
	groups     map[string]bool
	versions   map[schema.GroupVersion]bool
	kinds      map[schema.GroupVersionKind]bool
}

// DefaultSkippedNamespaces matches the namespaces that every cluster has of its
// own. They stay on a control plane with default flags.
const DefaultSkippedNamespaces = "kube-.*"

// DefaultSkipRules returns the rules of a control plane with default flags.
func DefaultSkipRules() SkipRules {
	rules, err := NewSkipRules([]string{DefaultSkippedNamespaces}, "")
	if err != nil {
		panic(err) // cannot happen: the rules are constant
	}
	return rules
}

// NewSkipRules returns the rules for the two flags: regular expressions for
// namespaces, each of which has to match the whole name; and APIs separated by
// semicolons, written as group, group/version or group/version/Kind,Kind. Kinds
// of the core group are written v1/Kind,Kind.
func NewSkipRules(namespaces []string, apis string) (SkipRules, error) {
	rules := SkipRules{
		groups:   map[string]bool{},
		versions: map[schema.GroupVersion]bool{},
		kinds:    map[schema.GroupVersionKind]bool{},
	}
	for _, ns := range namespaces {
		re, err := regexp.Compile("^(?:" + ns + ")$")
		if err != nil {
			return SkipRules{}, fmt.Errorf("skipped namespaces %q: %w", ns, err)
		}
		rules.namespaces = append(rules.namespaces, re)
	}
	for api := range strings.SplitSeq(apis, ";") {
		if api = strings.TrimSpace(api); api == "" {
			continue
		}
		if err := rules.addAPI(api); err != nil {
			return SkipRules{}, err
		}
	}
	return rules, nil
}

func (s *SkipRules) addAPI(api string) error {
	parts := strings.Split(api, "/")
	switch {
	case len(parts) == 1:
		s.groups[parts[0]] = true
	case len(parts) == 2 && parts[0] == "v1":
		s.addKinds(schema.GroupVersion{Version: "v1"}, parts[1])
	case len(parts) == 2:
		s.versions[schema.GroupVersion{Group: parts[0], Version: parts[1]}] = true
	case len(parts) == 3:
		s.addKinds(schema.GroupVersion{Group: parts[0], Version: parts[1]}, parts[2])
	default:
		return fmt.Errorf("skipped API %q: want group, group/version or group/version/Kind,Kind", api)
	}
	return nil
}

func (s *SkipRules) addKinds(gv schema.GroupVersion, kinds string) {
	for kind := range strings.SplitSeq(kinds, ",") {
		s.kinds[gv.WithKind(strings.TrimSpace(kind))] = true
	}
}

// skippedGroups are the groups of the control plane's own kinds, and of records
// that belong to one server.
var skippedGroups = []string{
	"cluster.karmada.io", "policy.karmada.io", "work.karmada.io", "config.karmada.io",
	"networking.karmada.io", "autoscaling.karmada.io", "remedy.karmada.io", "apps.karmada.io",
	"events.k8s.io", "gitops.flotilla.io",
}

// Propagates reports whether r may be a template at all.
func Propagates(r selector.Resource, skip SkipRules) bool {
	gv, err := schema.ParseGroupVersion(r.APIVersion)
	if err != nil || !PropagatesKind(gv.WithKind(r.Kind), skip) {
		return false
	}
	switch {
	case gv.Group == "" && r.Kind == "Namespace":
		return !skip.namespace(r.Name) && OptsOut(r.Labels)
	case gv.Group == "" && r.Kind == "ConfigMap" && r.Name == rootCA:
		return false
	case r.Namespace == "kube-system" && r.Kind == "ConfigMap" && r.Name == "extension-apiserver-authentication":
		return false
	}
	return r.Namespace == "" || !skip.namespace(r.Namespace)
}

// rootCA is the ConfigMap that every cluster has in every namespace, with a CA of
// its own: the hub's would break a member's.
const rootCA = "kube-root-ca.crt"

// OptsOut reports whether a namespace with these labels opts out of being created
// in every member. Only then may policies carry it, as its Work would have two
// writers otherwise.
func OptsOut(labels map[string]string) bool {
	return strings.EqualFold(labels[policyv1alpha1.NamespaceSkipAutoPropagationLabel], "true")
}

// PropagatesKind reports whether any resource of the kind may be a template.
// Other kinds need not be watched.
func PropagatesKind(gvk schema.GroupVersionKind, skip SkipRules) bool {
	switch {
	case slices.Contains(skippedGroups, gvk.Group):
		return false
	case gvk == schema.GroupVersionKind{Version: "v1", Kind: "Event"}:
		return false
	case gvk.GroupVersion() == schema.GroupVersion{Group: "coordination.k8s.io", Version: "v1"}:
		return false
	default:
		return !skip.groups[gvk.Group] && !skip.versions[gvk.GroupVersion()] && !skip.kinds[gvk]
	}
}

// SkipsNamespace reports whether the namespace and everything in it stay on the
// hub.
func (s SkipRules) SkipsNamespace(name string) bool { return s.namespace(name) }

func (s SkipRules) namespace(name string) bool {
	return Reserved(name) || slices.ContainsFunc(s.namespaces, func(re *regexp.Regexp) bool { return re.MatchString(name) })
}

// Reserved reports whether the namespace belongs to the control plane itself.
func Reserved(namespace string) bool {
	if _, ok := workv1alpha2.ClusterOfExecutionNamespace(namespace); ok {
		return true
	}
	return namespace == workv1alpha2.NamespaceKarmadaSystem || namespace == workv1alpha2.NamespaceKarmadaCluster
}
