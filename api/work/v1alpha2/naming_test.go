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
	cases := map[string]struct{ kind, name, namespace, want, former string }{
		"a namespaced template":                   {"Deployment", "nginx", "default", "nginx-687f7fb96f", "nginx-6c47d997fc"},
		"a namespace made of letters":             {"Deployment", "deploy-abc", "ns", "deploy-abc-6cfcc46f49", "deploy-abc-65bb8d8c9c"},
		"the namespace default":                   {"Namespace", "default", "", "default-5b5ccb595b", "default-5748775fcb"},
		"a cluster-scoped template":               {"ClusterRole", "deploy-abc", "", "deploy-abc-7dc4db6ccb", "deploy-abc-59c8f7958d"},
		"colons of RBAC names become dots":        {"ClusterRole", "system:test-x", "", "system.test-x-7b576cf94d", "system.test-x-7965c76948"},
		"colons become dots in a namespace, too":  {"Deployment", "system:test-x", "ns", "system.test-x-98d9db5d5", "system.test-x-dfdcff7c"},
		"capitals become small, dots stay as are": {"ClusterRole", "UPPER.Case", "", "upper.case-585b9b556d", "upper.case-6cc7855b96"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := WorkName(c.kind, c.name, c.namespace); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if got := FormerWorkName(c.kind, c.name, c.namespace); got != c.former {
				t.Errorf("formerly %q, want %q", got, c.former)
			}
			if got := WorkNamed(c.former, c.kind, c.name, c.namespace); got != c.want {
				t.Errorf("what was %q is %q, want %q", c.former, got, c.want)
			}
			if got := WorkNamed("mine", c.kind, c.name, c.namespace); got != "mine" {
				t.Errorf("a name of somebody's own becomes %q", got)
			}
		})
	}
}

func TestBindingReferenceKey(t *testing.T) {
	cases := map[string]struct{ namespace, name, want, former string }{
		"a namespaced binding":     {"default", "nginx-deployment", "5bdc5c4dcf", "bd8bc797f"},
		"a cluster-scoped binding": {"", "x-clusterrole", "6d6bb69c7b", "66c67977c6"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := BindingReferenceKey(c.namespace, c.name); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if got := FormerBindingReferenceKey(c.namespace, c.name); got != c.former {
				t.Errorf("formerly %q, want %q", got, c.former)
			}
		})
	}
}

func TestPolicyName(t *testing.T) {
	cases := map[string]struct{ group, version, kind, namespace, name, want, former string }{
		"a namespaced object":              {"apps", "v1", "Deployment", "default", "nginx", "nginx-6d7f8d5f5b", "nginx-67677c4d76"},
		"colons of RBAC names become dots": {"rbac.authorization.k8s.io", "v1", "ClusterRole", "", "sea:Reader", "sea.reader-54499c54c", "sea.reader-7857797fc9"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			gvk := schema.GroupVersionKind{Group: c.group, Version: c.version, Kind: c.kind}
			if got := PolicyName(gvk, c.namespace, c.name); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if got := FormerPolicyName(gvk, c.namespace, c.name); got != c.former {
				t.Errorf("formerly %q, want %q", got, c.former)
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
