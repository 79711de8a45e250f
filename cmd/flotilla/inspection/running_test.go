package inspection_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/internal/command"
)

// running is a call of the command line that goes on until it is interrupted.
type running struct {
	out, err  *buffer
	interrupt func() result
}

func (w *world) start(t *testing.T, args ...string) *running {
	t.Helper()
	r := &running{out: &buffer{}, err: &buffer{}}
	cmd := root(t, "", r.out, r.err, append([]string{"--kubeconfig", w.hub.Kubeconfig}, args...)...)
	ctx, cancel := context.WithCancel(t.Context())
	code := make(chan int, 1)
	go func() { code <- command.Run(ctx, cmd) }()
	r.interrupt = func() result {
		t.Helper()
		cancel()
		select {
		case c := <-code:
			return result{c, r.out.String(), r.err.String()}
		case <-time.After(timeout):
			t.Fatalf("%s does not end", strings.Join(args, " "))
			return result{}
		}
	}
	return r
}

// shows waits until the call has printed text.
func (r *running) shows(t *testing.T, text string) {
	t.Helper()
	eventually(t, "see "+text, func(context.Context) error {
		if strings.Contains(r.out.String(), text) {
			return nil
		}
		return fmt.Errorf("it says %q and %q", r.out.String(), r.err.String())
	})
}

// testWatch follows changes in several clusters, of which one is away.
func testWatch(t *testing.T, w *world) {
	r := w.start(t, words("get cm -n shop --field-selector metadata.name=texts -C east,west -w -L step")...)
	only := w.start(t, words("get cm texts -n shop -C east --watch-only --output-watch-events -o name")...)
	hub := w.start(t, words("get cm texts -n shop -w")...)
	north := w.start(t, words("get cm -n shop -C east,north -w")...)
	r.shows(t, "west")
	hub.shows(t, "texts")
	eventually(t, "hear of north", func(context.Context) error {
		if strings.Contains(north.err.String(), "warning: cluster north: it cannot be reached") {
			return nil
		}
		return errors.New(north.err.String())
	})
	north.interrupt()

	texts := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "texts"}}
	step := 0
	eventually(t, "see a change in all", func(ctx context.Context) error {
		step++ // a watch may begin after a change
		texts.SetManagedFields(nil)
		patch := fmt.Appendf(nil, `{"metadata":{"labels":{"step":"s%d"}}}`, step)
		if err := w.own.Patch(ctx, texts, client.RawPatch("application/merge-patch+json", patch)); err != nil {
			return err
		}
		out := r.out.String()
		if regexp.MustCompile(`texts +east .* s\d`).MatchString(out) && regexp.MustCompile(`texts +west .* s\d`).MatchString(out) &&
			strings.Contains(only.out.String(), "configmap/texts") {
			return nil
		}
		return fmt.Errorf("%s\n%s", out, only.out.String())
	})
	for name, call := range map[string]*running{"two": r, "only": only, "hub": hub} {
		if got := call.interrupt(); got.code != command.Interrupted || got.err != "" {
			t.Errorf("%s: exit code %d, error %q", name, got.code, got.err)
		}
	}
	header, _, _ := strings.Cut(r.out.String(), "\n")
	if diff := cmp.Diff("NAME CLUSTER DATA AGE ADOPTION STEP", strings.Join(strings.Fields(header), " ")); diff != "" {
		t.Errorf("header (-want +got):\n%s", diff)
	}
	if n := strings.Count(r.out.String(), "NAME"); n != 1 {
		t.Errorf("%d headers:\n%s", n, r.out.String())
	}
	if diff := cmp.Diff("NAME DATA AGE", strings.Join(strings.Fields(hub.out.String())[:3], " ")); diff != "" {
		t.Errorf("header of the hub (-want +got):\n%s", diff)
	}
}

// testInterrupted: whatever runs ends at once, with its own exit code.
func testInterrupted(t *testing.T, w *world) {
	for line, first := range map[string]string{
		"logs web-1 -n shop -C east -f":                  "and works\n",
		"logs -l app=web -n shop -C east -f --prefix":    "[pod/web-2/main] and works\n",
		"exec web-1 -n shop -C east -- wait":             "waiting\n",
		"get configmaps -n shop -C east --watch -o name": "configmap/texts\n",
	} {
		t.Run(line, func(t *testing.T) {
			r := w.start(t, words(line)...)
			r.shows(t, first)
			if got := r.interrupt(); got.code != command.Interrupted || got.err != "" {
				t.Errorf("exit code %d, error %q", got.code, got.err)
			}
		})
	}
}

func testPortForward(t *testing.T, w *world) {
	r := w.start(t, words("port-forward web-1 :80 -n shop -C east --address 127.0.0.1")...)
	r.shows(t, "-> 80")
	address := regexp.MustCompile(`127\.0\.0\.1:\d+`).FindString(r.out.String())
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(timeout)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, "ahoy\n"); err != nil {
		t.Fatal(err)
	}
	if answer, err := bufio.NewReader(conn).ReadString('\n'); err != nil || answer != "ahoy\n" {
		t.Errorf("the pod answers %q, %v; %s", answer, err, r.err.String())
	}
	if got := r.interrupt(); got.code != command.Interrupted {
		t.Errorf("exit code %d, error %q", got.code, got.err)
	}
}

func testCompletion(t *testing.T, w *world) {
	for line, want := range map[string]string{
		"get pods -C ''":                 "east north west",
		"get pods -C e":                  "east",
		"get pods --cluster east,":       "east,north east,west",
		"get pods --clusters east,w":     "east,west",
		"get pods -n shop -C east web":   "web-1 web-2",
		"get -C east configm":            "configmaps",
		"get cm -n sh":                   "shop",
		"get pods -s ''":                 "karmada members all",
		"get -n shop cm tex":             "texts",
		"logs -n shop -C east web":       "web-1 web-2",
		"logs -n shop web-1":             "web-1",
		"logs -n shop dep":               "deployments/",
		"exec -n shop -C east web-2":     "web-2",
		"top nodes -C east ''":           "east-node-1",
		"top pods --sort-by ''":          "cpu memory",
		"describe cm -n shop -C east te": "texts",
		"get pods -C east -n shop -o j":  "json jsonpath jsonpath-as-json jsonpath-file",
		"get pods -C mars web":           "",
		"get pods -C north web":          "",
		"api-resources -C w":             "west",
		"get --karmada-context ''":       "flotilla karmada-apiserver",
	} {
		t.Run(line, func(t *testing.T) {
			t.Setenv("KUBECACHEDIR", scratch(t))
			args := words(line) // '' is the empty word
			args = append([]string{"__complete", args[0], "--kubeconfig", w.hub.Kubeconfig}, args[1:]...)
			var out, errOut buffer
			if code := command.Run(t.Context(), root(t, "", &out, &errOut, args...)); code != 0 {
				t.Fatalf("exit code %d: %s", code, errOut.String())
			}
			var offered []string
			for word := range strings.Lines(out.String()) {
				if word, _, _ = strings.Cut(strings.TrimSpace(word), "\t"); !strings.HasPrefix(word, ":") && !strings.HasPrefix(word, "_activeHelp_") {
					offered = append(offered, word)
				}
			}
			if diff := cmp.Diff(want, strings.Join(offered, " ")); diff != "" {
				t.Errorf("offered (-want +got):\n%s", diff)
			}
		})
	}
}

// measure lets the member serve metrics of its pods and of its node.
func (w *world) measure(t *testing.T) {
	t.Helper()
	for kind, scope := range map[string]apiextensionsv1.ResourceScope{"Pod": apiextensionsv1.NamespaceScoped, "Node": apiextensionsv1.ClusterScoped} {
		plural := strings.ToLower(kind) + "s"
		w.create(t, w.own, &apiextensionsv1.CustomResourceDefinition{
			ObjectMeta: metav1.ObjectMeta{Name: plural + ".metrics.k8s.io", Annotations: map[string]string{"api-approved.kubernetes.io": "unapproved, for a test"}},
			Spec: apiextensionsv1.CustomResourceDefinitionSpec{
				Group: "metrics.k8s.io", Scope: scope,
				Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Singular: strings.ToLower(kind), Kind: kind + "Metrics", ListKind: kind + "MetricsList"},
				Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1beta1", Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{
					OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: ptr.To(true)},
				}}},
			},
		})
	}
	use := func(cpu, memory string) map[string]any {
		return map[string]any{"cpu": resource.MustParse(cpu).ToUnstructured(), "memory": memory}
	}
	pod := func(name string, containers ...any) map[string]any {
		return map[string]any{"kind": "PodMetrics", "metadata": map[string]any{"namespace": "shop", "name": name, "labels": map[string]any{"app": "web"}}, "timestamp": "2026-03-05T09:30:00Z", "window": "15s", "containers": containers}
	}
	for _, content := range []map[string]any{
		pod("web-1", map[string]any{"name": "main", "usage": use("250m", "64Mi")}, map[string]any{"name": "side", "usage": use("5m", "128Mi")}),
		pod("web-2", map[string]any{"name": "main", "usage": use("1", "32Mi")}),
		{"kind": "NodeMetrics", "metadata": map[string]any{"name": "east-node-1"}, "timestamp": "2026-03-05T09:30:00Z", "window": "15s", "usage": use("8", "32Gi")},
	} {
		content["apiVersion"] = "metrics.k8s.io/v1beta1"
		obj := &unstructured.Unstructured{Object: content}
		eventually(t, "store metrics", func(ctx context.Context) error { // once the definition is served
			return client.IgnoreAlreadyExists(w.own.Create(ctx, obj.DeepCopy()))
		})
	}
}
