package inspection_test

import (
	"strings"
	"testing"
)

// TestRead looks at a real control plane and a real member through its proxy.
func TestRead(t *testing.T) {
	w := newWorld(t)
	w.furnish(t)
	w.kubelet(t)
	golden := func(group string, calls map[string]string) {
		t.Run(group, func(t *testing.T) {
			for name, line := range calls {
				t.Run(name, func(t *testing.T) {
					golden(t, group+"-"+name, w.call(t.Context(), t, "typed\n", words(line)...))
				})
			}
		})
	}
	golden("get", getCalls)
	golden("describe", describeCalls)
	golden("pods", podCalls)
	golden("servers", serverCalls)
	w.measure(t)
	golden("top", topCalls)
	t.Run("watch", func(t *testing.T) { testWatch(t, w) })
	t.Run("interrupted", func(t *testing.T) { testInterrupted(t, w) })
	t.Run("port-forward", func(t *testing.T) { testPortForward(t, w) })
	t.Run("completion", func(t *testing.T) { testCompletion(t, w) })
}

// words divides a line at its blanks; ' keeps words together.
func words(line string) []string {
	var out []string
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			out = append(out, part)
			continue
		}
		out = append(out, strings.Fields(part)...)
	}
	return out
}

var getCalls = map[string]string{
	"clusters":          "get clusters",
	"clusters-wide":     "get clusters -o wide",
	"hub":               "get configmaps -n shop --field-selector metadata.name=texts",
	"members":           "get configmaps -n shop --field-selector metadata.name=texts -C west,east",
	"all":               "get configmaps -n shop --field-selector metadata.name=texts -s all -C west",
	"one-away":          "get configmaps -n shop --field-selector metadata.name=texts -s all",
	"pods":              "get pods -n shop -C east,west --sort-by .metadata.name",
	"labels":            "get pods -n shop -C east --show-labels -l app=web",
	"no-headers":        "get pods -n shop -C east --no-headers -A -L app --field-selector metadata.namespace=shop",
	"kinds":             "get cm/texts pod/web-1 -n shop -C east,west",
	"name":              "get pods -n shop -C east,west -o name",
	"jsonpath":          `get pods -n shop -C east,west -o 'jsonpath={range .items[*]}{.metadata.annotations.resource\.karmada\.io/cached-from-cluster} {.metadata.name}{"\n"}{end}'`,
	"custom-columns":    "get cm texts -n shop -C east,west -o custom-columns=NAME:.metadata.name,HELLO:.data.hello",
	"single":            "get cm texts -n shop -C east -o jsonpath={.data}",
	"plain":             "get cm texts -n shop -C east --server-print=false",
	"namespaced-kind":   "get namespaces shop -C east",
	"empty":             "get pods -n empty -C east,west",
	"absent":            "get pod gone -n shop -C east,west",
	"absent-in-one":     "get cm texts gone -n shop -C east",
	"absent-ignored":    "get pod gone -n shop -C east,west --ignore-not-found",
	"hub-absent":        "get cm gone -n shop",
	"kind-of-hub-only":  "get clusters -s all -C east -o name",
	"no-kind":           "get boats -C east,west",
	"no-kind-in-one":    "get boats -C east",
	"hub-no-kind":       "get boats",
	"hub-no-cluster":    "get clusters eats",
	"no-cluster":        "get pods -C mars",
	"away":              "get pods -C north",
	"no-rights":         "get pods -n shop -C east --as john",
	"no-rights-to-list": "get pods -n shop -s members --as john",
	"hub-no-rights":     "get configmaps -n shop --as john",
	"wrong-selector":    "get pods -C east,west -l !!",
	"nothing":           "get",
	"watch-no-cluster":  "get pods -C mars -w",
	"watch-away":        "get pods -C north -w",
	"watch-absent":      "get pod gone -n shop -C east,west -w",
	"watch-no-kind":     "get boats -C east -w",
	"watch-no-rights":   "get pods -n shop -C east -w --as john",
	"watch-two-kinds":   "get pods,cm -n shop -C east -w",
	"watch-hub-absent":  "get cm gone -n shop -w",
	"watch-no-hub":      "get cm -w --server https://127.0.0.1:1",
	"wrong-scope":       "get pods -s moon",
	"hub-and-clusters":  "get pods -s karmada -C east",
	"wrong-output":      "get pods -C east -o paper",
	"wrong-flag":        "get pods --paper",
	"raw-of-member":     "get --raw /api -C east",
	"no-hub":            "get pods --server https://127.0.0.1:1",
	"no-kubeconfig":     "get pods --kubeconfig testdata/gone",
}

var describeCalls = map[string]string{
	"member":     "describe cm texts -n shop -C east",
	"hub":        "describe cm texts -n shop",
	"no-such":    "describe cluster eats",
	"absent":     "describe cm gone -n shop -C east",
	"no-kind":    "describe boat -C east",
	"no-cluster": "describe cm texts -n shop -C mars",
	"away":       "describe cm texts -n shop -C north",
	"two":        "describe cm texts -n shop -C east,west",
	"all":        "describe cm texts -n shop -s all",
	"which":      "describe cm texts -n shop -s members",
	"nothing":    "describe",
	"no-rights":  "describe cm texts -n shop -C east --as john",
	"empty":      "describe pods -n empty -C east",
	"no-hub":     "describe cm --server https://127.0.0.1:1",
	"wrong-flag": "describe cm --paper",
}

var podCalls = map[string]string{
	"logs":               "logs web-1 -n shop -C east",
	"logs-prefix":        "logs -l app=web -n shop -C east --prefix --tail 5",
	"logs-several":       "logs web-1 -n shop",
	"logs-absent":        "logs gone -n shop -C east",
	"logs-no-container":  "logs web-1 -n shop -C east -c gone",
	"logs-no-cluster":    "logs web-1 -n shop -C mars",
	"logs-away":          "logs web-1 -n shop -C north",
	"logs-no-rights":     "logs web-1 -n shop -C east --as john",
	"logs-nothing":       "logs",
	"logs-too-much":      "logs a b c",
	"logs-both":          "logs web-1 -l app=web",
	"logs-selector":      "logs -l app=web -n shop",
	"logs-no-hub":        "logs web-1 --server https://127.0.0.1:1",
	"exec":               "exec web-1 -n shop -C east -- echo hello there",
	"exec-stdin":         "exec web-1 -n shop -C east -i -- cat",
	"exec-fails":         "exec web-1 -n shop -C east -- nonsense",
	"exec-no-terminal":   "exec web-1 -n shop -C east -it -- cat",
	"exec-no-command":    "exec web-1 -n shop -C east",
	"exec-no-dash":       "exec web-1 date -n shop -C east",
	"exec-no-pod":        "exec -n shop -C east -- date",
	"exec-absent":        "exec gone -n shop -C east -- date",
	"exec-no-cluster":    "exec web-1 -n shop -C mars -- date",
	"exec-away":          "exec web-1 -n shop -C north -- date",
	"exec-no-rights":     "exec web-1 -n shop -C east --as john -- date",
	"exec-hub":           "exec web-1 -n shop -s karmada -- date",
	"attach":             "attach web-1 -n shop -C east -q",
	"attach-absent":      "attach gone -n shop -C east",
	"attach-nothing":     "attach",
	"attach-no-cluster":  "attach web-1 -n shop -C mars",
	"forward-no-port":    "port-forward web-1 -n shop -C east",
	"forward-wrong-port": "port-forward web-1 http:x -n shop -C east",
	"forward-absent":     "port-forward gone 80 -n shop -C east",
	"forward-no-cluster": "port-forward web-1 80 -n shop -C mars",
}

var serverCalls = map[string]string{
	"resources":            "api-resources -C east --api-group apps",
	"resources-hub":        "api-resources --api-group policy.karmada.io -o name",
	"resources-no-cluster": "api-resources -C mars",
	"resources-away":       "api-resources -C north",
	"resources-no-rights":  "api-resources -C east --as john",
	"resources-sort":       "api-resources --sort-by size",
	"resources-argument":   "api-resources pods",
	"resources-no-hub":     "api-resources --server https://127.0.0.1:1",
	"versions":             "api-versions -C east",
	"versions-no-cluster":  "api-versions -C mars",
	"versions-away":        "api-versions -C north",
	"versions-two":         "api-versions -C east,west",
	"versions-no-hub":      "api-versions --server https://127.0.0.1:1",
}

var topCalls = map[string]string{
	"pods":            "top pods -n shop -C east,west",
	"pods-sum":        "top pods -A -C east --sum",
	"pods-containers": "top pods -n shop -C east --containers --sort-by memory",
	"pods-cpu":        "top pods -n shop -C east --sort-by cpu --no-headers",
	"pods-selector":   "top pods -n shop -C east -l app=web",
	"pod":             "top pod web-1 -n shop -C east,west",
	"pod-absent":      "top pod gone -n shop -C east,west",
	"pods-empty":      "top pods -n empty -C east",
	"pods-away":       "top pods -n shop",
	"nodes":           "top nodes -C east",
	"nodes-capacity":  "top nodes -C east --show-capacity --use-protocol-buffers=false",
	"node-absent":     "top node gone -C east",
	"no-cluster":      "top nodes -C mars",
	"no-rights":       "top pods -n shop -C east --as john",
	"nothing":         "top",
	"both":            "top pod web-1 -l app=web",
	"sort":            "top pods --sort-by size",
	"selector":        "top pods -l !!",
	"fields":          "top pods --field-selector !!",
	"too-much":        "top pods a b",
	"no-hub":          "top pods --server https://127.0.0.1:1",
}
