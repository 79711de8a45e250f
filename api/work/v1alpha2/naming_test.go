package v1alpha2

import (
	"strings"
	"testing"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
)

func TestBindingName(t *testing.T) {
	cases := map[string]struct{ kind, name, want string }{
		"name and kind, in lower case":     {"Deployment", "nginx", "nginx-deployment"},
		"colons of RBAC names become dots": {"ClusterRole", "system:Node", "system.node-clusterrole"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := BindingName(c.kind, c.name); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestWorkName(t *testing.T) {
	cases := map[string]struct{ kind, name, namespace, want string }{
		"a namespaced template":            {"Deployment", "nginx", "default", "nginx-6c47d997fc"},
		"a cluster-scoped template":        {"Namespace", "default", "", "default-5748775fcb"},
		"colons of RBAC names become dots": {"ClusterRole", "system:Node", "", "system.node-6844498985"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := WorkName(c.kind, c.name, c.namespace); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestPolicyName(t *testing.T) {
	cases := map[string]struct{ group, version, kind, namespace, name, want string }{
		"a namespaced object":              {"apps", "v1", "Deployment", "shop", "web", "web-7c779fcf79"},
		"colons of RBAC names become dots": {"rbac.authorization.k8s.io", "v1", "ClusterRole", "", "sea:Reader", "sea.reader-7857797fc9"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			gvk := schema.GroupVersionKind{Group: c.group, Version: c.version, Kind: c.kind}
			if got := PolicyName(gvk, c.namespace, c.name); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestExecutionNamespaces(t *testing.T) {
	if got, want := ExecutionNamespace("eu-1"), "karmada-es-eu-1"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	cases := map[string]struct {
		namespace, want string
		ok              bool
	}{
		"one of ours":                    {"karmada-es-eu-1", "eu-1", true},
		"the prefix alone":               {"karmada-es-", "", false},
		"another namespace":              {"karmada-system", "", false},
		"the prefix somewhere in a name": {"x-karmada-es-eu-1", "", false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, ok := ClusterOfExecutionNamespace(c.namespace)
			if got != c.want || ok != c.ok {
				t.Errorf("got %q, %v, want %q, %v", got, ok, c.want, c.ok)
			}
		})
	}
}

func FuzzNames(f *testing.F) {
	f.Add("Deployment", "web", "shop")
	f.Add("ClusterRole", "system:node", "")
	f.Fuzz(func(t *testing.T, kind, name, namespace string) {
		if !utf8.ValidString(name) || len(validation.IsDNS1123Subdomain(strings.ReplaceAll(name, ":", "."))) > 0 {
			t.Skip("no name that an API server would let through")
		}
		work := WorkName(kind, name, namespace)
		if len(name) < 200 && len(validation.IsDNS1123Subdomain(work)) > 0 {
			t.Errorf("WorkName(%q, %q, %q) = %q, which is no valid name", kind, name, namespace, work)
		}
		if other := WorkName(kind, name, namespace+"x"); other == work {
			t.Errorf("namespaces %q and %q share the name %q", namespace, namespace+"x", work)
		}
	})
}
