package fake

import (
	"net/http"
	"strings"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
)

// kind is one that a member serves.
type kind struct {
	gvk        schema.GroupVersionKind
	resource   string
	namespaced bool
}

// table lists what every member serves.
var table = []kind{
	{schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, "namespaces", false},
	{schema.GroupVersionKind{Version: "v1", Kind: "Node"}, "nodes", false},
	{schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, "pods", true},
	{schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, "configmaps", true},
	{schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, "secrets", true},
	{schema.GroupVersionKind{Version: "v1", Kind: "Service"}, "services", true},
	{schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, "deployments", true},
	{schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "StatefulSet"}, "statefulsets", true},
	{schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}, "customresourcedefinitions", false},
	{schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"}, "apiservices", false},
}

func verbs() []string {
	return []string{"create", "delete", "get", "list", "patch", "update", "watch"}
}

// find returns the kind that a path names.
func find(gv schema.GroupVersion, resource string) (kind, bool) {
	for _, k := range table {
		if k.gvk.GroupVersion() == gv && k.resource == resource {
			return k, true
		}
	}
	return kind{}, false
}

// groups are those of the table, in its order; the core group is "".
func groups() []string {
	var out []string
	for _, k := range table {
		if len(out) == 0 || out[len(out)-1] != k.gvk.Group {
			out = append(out, k.gvk.Group)
		}
	}
	return out
}

// discovery answers what is asked about a member rather than of it. It returns
// nil for any other path.
func discovery(req *http.Request) any {
	whole := strings.Contains(req.Header.Get("Accept"), "as=APIGroupDiscoveryList")
	switch path := strings.Trim(req.URL.Path, "/"); path {
	case "version":
		return version.Info{Major: "1", Minor: "36", GitVersion: "v1.36.4"}
	case "api":
		if whole {
			return aggregated(true)
		}
		return metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions", APIVersion: "v1"}, Versions: []string{"v1"}}
	case "apis":
		if whole {
			return aggregated(false)
		}
		return groupList()
	default:
		_, version, _ := strings.Cut(path, "/")
		gv, err := schema.ParseGroupVersion(version)
		if err != nil || !strings.HasPrefix(path, "api") || strings.Count(path, "/") != strings.Count(gv.String(), "/")+1 {
			return nil
		}
		return resourceList(gv)
	}
}

// aggregated lists the core group, or all others.
func aggregated(core bool) apidiscovery.APIGroupDiscoveryList {
	out := apidiscovery.APIGroupDiscoveryList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupDiscoveryList", APIVersion: "apidiscovery.k8s.io/v2"}}
	for _, group := range groups() {
		if (group == "") != core {
			continue
		}
		v := apidiscovery.APIVersionDiscovery{Version: "v1", Freshness: apidiscovery.DiscoveryFreshnessCurrent}
		for _, k := range table {
			if k.gvk.Group != group {
				continue
			}
			scope := apidiscovery.ScopeCluster
			if k.namespaced {
				scope = apidiscovery.ScopeNamespace
			}
			v.Resources = append(v.Resources, apidiscovery.APIResourceDiscovery{
				Resource: k.resource, Scope: scope, Verbs: verbs(), SingularResource: strings.ToLower(k.gvk.Kind),
				ResponseKind: &metav1.GroupVersionKind{Group: k.gvk.Group, Version: k.gvk.Version, Kind: k.gvk.Kind},
			})
		}
		out.Items = append(out.Items, apidiscovery.APIGroupDiscovery{
			ObjectMeta: metav1.ObjectMeta{Name: group}, Versions: []apidiscovery.APIVersionDiscovery{v},
		})
	}
	return out
}

func groupList() metav1.APIGroupList {
	out := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
	for _, group := range groups() {
		if group == "" {
			continue
		}
		v := metav1.GroupVersionForDiscovery{GroupVersion: group + "/v1", Version: "v1"}
		out.Groups = append(out.Groups, metav1.APIGroup{Name: group, Versions: []metav1.GroupVersionForDiscovery{v}, PreferredVersion: v})
	}
	return out
}

// resourceList lists the kinds of one group and version; nil where it is not
// served.
func resourceList(gv schema.GroupVersion) any {
	out := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: gv.String()}
	for _, k := range table {
		if k.gvk.GroupVersion() == gv {
			out.APIResources = append(out.APIResources, metav1.APIResource{
				Name: k.resource, Namespaced: k.namespaced, Kind: k.gvk.Kind, Verbs: verbs(),
			})
		}
	}
	if len(out.APIResources) == 0 {
		return nil
	}
	return out
}
