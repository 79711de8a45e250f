package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	"github.com/flotilla-io/flotilla/cmd/flotilla/commandtest"
	"github.com/flotilla-io/flotilla/policies/explain"
)

// explainRun runs explain as a shell would, and returns all that it says.
func explainRun(t *testing.T, in string, args ...string) (code int, out, errOut string) {
	t.Helper()
	t.Setenv("HOME", t.TempDir()) // what discovery finds is kept there
	return commandtest.Run(t.Context(), newCommand("flotilla"), in, append([]string{"explain"}, args...)...).All()
}

// TestExplainCalls: an error is one line with the next step.
func TestExplainCalls(t *testing.T) {
	denying := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	defer denying.Close()
	nobody := commandtest.Kubeconfig(t, "http://"+commandtest.Nobody(t), "")
	manifest := filepath.Join(t.TempDir(), "app.yaml")
	if err := os.WriteFile(manifest, []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: b}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		args []string
		in   string
		code int
		says string
	}{
		"nothing":                  {args: nil, code: 2, says: "KIND/NAME is missing: flotilla explain deployment/web -n shop"},
		"a namespace in the name":  {args: []string{"deployment/shop/web"}, code: 2, says: "the namespace goes to -n"},
		"no name":                  {args: []string{"deployment/"}, code: 2, says: "is not KIND/NAME"},
		"no kind":                  {args: []string{"/web"}, code: 2, says: "is not KIND/NAME"},
		"too much":                 {args: []string{"deployment", "web", "api"}, code: 2, says: `"api" is too much`},
		"an output there is not":   {args: []string{"deployment/web", "-o", "wide"}, code: 2, says: "it is text, json or yaml"},
		"fields as JSON":           {args: []string{"deployment", "-o", "json"}, code: 2, says: "say deployment/NAME"},
		"an object recursively":    {args: []string{"deployment/web", "--recursive"}, code: 2, says: "name no object"},
		"a file that is not there": {args: []string{"-f", "gone.yaml"}, code: 2, says: "there is no file or folder gone.yaml"},
		"a folder":                 {args: []string{"-f", filepath.Dir(manifest), "--kubeconfig", nobody}, code: 2, says: "say which of configmap/a, secret/b"},
		"a file that is no YAML":   {args: []string{"-f", "-"}, in: "{", code: 1, says: "-: "},
		"a file without a kind":    {args: []string{"-f", "-"}, in: "a: b", code: 1, says: "'Kind' is missing"},
		"nobody answers":           {args: []string{"deployment/web", "--kubeconfig", nobody}, code: 1, says: "no control plane answers at http://127.0.0.1:"},
		"fields of nobody":         {args: []string{"deployment", "--kubeconfig", nobody}, code: 1, says: "no control plane answers at http://127.0.0.1:"},
		"credentials that are bad": {args: []string{"deployment/web", "--kubeconfig", commandtest.Kubeconfig(t, denying.URL, "")}, code: 1, says: "does not accept these credentials"},
		"a kubeconfig that is not": {args: []string{"deployment/web", "--kubeconfig", "gone"}, code: 1, says: "gone"},
		"a context that is not":    {args: []string{"deployment/web", "--kubeconfig", nobody, "--karmada-context", "gone"}, code: 1, says: `there is no context "gone" in ` + nobody + ": there is c"},
		"files with several":       {args: []string{"-f", manifest, "--kubeconfig", nobody}, code: 2, says: "say which of configmap/a, secret/b"},
		"files with policies only": {args: []string{"-f", "-", "--kubeconfig", nobody}, in: "apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata: {name: a}\n", code: 2, says: "name what is to be explained"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			code, out, errOut := explainRun(t, tc.in, tc.args...)
			if code != tc.code || out != "" || !strings.Contains(errOut, tc.says) || strings.Count(errOut, "\n") != 1 {
				t.Errorf("code %d, output %q, error %q; want code %d and %q on one line", code, out, errOut, tc.code, tc.says)
			}
		})
	}
}

// mapper knows a few kinds, one name of which means two.
func mapper() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	m.Add(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, meta.RESTScopeNamespace)
	m.Add(schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}, meta.RESTScopeRoot)
	m.Add(schema.GroupVersionKind{Group: "a.example", Version: "v1", Kind: "Backup"}, meta.RESTScopeNamespace)
	m.Add(schema.GroupVersionKind{Group: "b.example", Version: "v1", Kind: "Backup"}, meta.RESTScopeNamespace)
	return m
}

func TestResolve(t *testing.T) {
	const deployment = "apps/v1, Kind=Deployment"
	cases := map[string]struct{ want, err string }{
		"deployment": {want: deployment}, "Deployment": {want: deployment}, "deployments": {want: deployment},
		"deployments.apps": {want: deployment}, "Deployment.v1.apps": {want: deployment},
		"backups.b.example": {want: "b.example/v1, Kind=Backup"},
		"backup":            {err: `"backup" may mean several kinds: say which of backup.a.example, backup.b.example`},
		"deployments.v9":    {err: `the control plane knows no kind "deployments.v9"`},
		"boat":              {err: `the control plane knows no kind "boat"`},
	}
	for word, tc := range cases {
		t.Run(word, func(t *testing.T) {
			r := explainReader{mapper: mapper()}
			mapping, err := r.resolve(word)
			if tc.err != "" {
				if err == nil || !strings.HasPrefix(err.Error(), tc.err) {
					t.Errorf("error %v, want %q", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := mapping.GroupVersionKind.String(); got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}

// requests are what a client asked a hub for.
type requests struct {
	mu  sync.Mutex
	all []string
}

func (r *requests) add(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, fmt.Sprintf(format, args...))
	slices.Sort(r.all)
}

// hub has the objects of a document, and counts requests.
func hub(t *testing.T, documents string, fail func(obj any) error) (client.Reader, *requests) {
	t.Helper()
	objects := fake.NewClientBuilder().WithScheme(scheme.New()).WithRESTMapper(nil).
		WithIndex(&workv1alpha1.Work{}, "metadata.name", func(obj client.Object) []string { return []string{obj.GetName()} })
	all, err := readManifests([]string{"-"}, strings.NewReader(documents))
	if err != nil {
		t.Fatal(err)
	}
	for _, obj := range append(all.templates, all.policies...) {
		objects = objects.WithObjects(obj)
	}
	asked := &requests{}
	return objects.WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			asked.add("get %s", kindOf(obj))
			if err := fail(obj); err != nil {
				return err
			}
			return c.Get(ctx, key, obj, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			o := client.ListOptions{}
			o.ApplyOptions(opts)
			asked.add("list %s limit %d", kindOf(list), o.Limit)
			if err := fail(list); err != nil {
				return err
			}
			return c.List(ctx, list, opts...)
		},
	}).Build(), asked
}

func kindOf(obj any) string {
	if o, ok := obj.(client.Object); ok && o.GetObjectKind().GroupVersionKind().Kind != "" {
		return o.GetObjectKind().GroupVersionKind().Kind
	}
	parts := strings.Split(fmt.Sprintf("%T", obj), ".")
	return parts[len(parts)-1]
}

// TestReadRequests: an explanation costs two gets and one list of each kind, and two by name where a cluster has no Work.
func TestReadRequests(t *testing.T) {
	data, err := os.ReadFile("../../policies/explain/testdata/example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	reader, asked := hub(t, string(data), func(any) error { return nil })
	r := &explainReader{hub: reader, mapper: mapper(), namespace: "shop", now: func() time.Time { return time.Unix(0, 0) }}
	in, err := r.read(t.Context(), "deployment", "web", manifests{})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"get Deployment", "get ResourceBinding",
		"list ClusterList limit 500", "list ClusterOverridePolicyList limit 500", "list ClusterPropagationPolicyList limit 500", "list FederatedResourceQuotaList limit 500",
		"list OverridePolicyList limit 500", "list PropagationPolicyList limit 500", "list ResourceInterpreterCustomizationList limit 500", "list ResourceInterpreterWebhookConfigurationList limit 500", "list WorkList limit 500",
		"list WorkList limit 500", "list WorkList limit 500", // by name, of a cluster that has none of the binding
	}
	if diff := cmp.Diff(want, asked.all); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if got := []int{len(in.Policies), len(in.Overrides), len(in.Clusters), len(in.Unread)}; !slices.Equal(got, []int{2, 1, 5, 0}) || in.Binding == nil {
		t.Errorf("read %v and binding %v", got, in.Binding)
	}
	if e := explain.Explain(in); e.Carried.By == nil || e.Carried.By.Name != "web" {
		t.Errorf("explained as:\n%s", e.Text(explain.TextOptions{}))
	}
}

// TestReadFaults: an error that is not about rights ends it.
func TestReadFaults(t *testing.T) {
	data, err := os.ReadFile("../../policies/explain/testdata/example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("the line is cut")
	for _, kind := range []string{"Deployment", "ResourceBinding", "ClusterList", "PropagationPolicyList", "OverridePolicyList", "WorkList"} {
		t.Run(kind, func(t *testing.T) {
			reader, _ := hub(t, string(data), func(obj any) error {
				if kindOf(obj) == kind {
					return broken
				}
				return nil
			})
			r := &explainReader{hub: reader, mapper: mapper(), namespace: "shop", now: time.Now}
			if _, err := r.read(t.Context(), "deployment", "web", manifests{}); !errors.Is(err, broken) {
				t.Errorf("error %v, want %v", err, broken)
			}
		})
	}
}
