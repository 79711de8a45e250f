package inspection_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// measured are members whose nodes have swap (east), have none of it (west), or do
// not say (north).
func measured() map[string]string {
	const served = `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"metrics.k8s.io/v1beta1","resources":[
		{"name":"nodes","kind":"NodeMetrics","namespaced":false,"verbs":["get","list"]},
		{"name":"pods","kind":"PodMetrics","namespaced":true,"verbs":["get","list"]}]}`
	metrics := func(kind, items string) string {
		return `{"kind":"` + kind + `MetricsList","apiVersion":"metrics.k8s.io/v1beta1","metadata":{},"items":[` + items + `]}`
	}
	node := func(name, info string) string {
		return `{"kind":"NodeList","apiVersion":"v1","metadata":{},"items":[{"metadata":{"name":"` + name + `"},"status":{
			"capacity":{"cpu":"2","memory":"4Gi"},"allocatable":{"cpu":"1","memory":"2Gi"},"nodeInfo":{` + info + `}}}]}`
	}
	const path = "/apis/metrics.k8s.io/v1beta1"
	out := map[string]string{}
	for cluster, answers := range map[string]map[string]string{
		"east": {
			"/api/v1/nodes": node("node-e", `"swap":{"capacity":4294967296}`),
			path + "/nodes": metrics("Node", `{"metadata":{"name":"node-e"},"usage":{"cpu":"250m","memory":"512Mi","swap":"1Gi"}}`),
			path + "/namespaces/shop/pods": metrics("Pod", `{"metadata":{"name":"web-1","namespace":"shop"},"containers":[
				{"name":"web","usage":{"cpu":"100m","memory":"64Mi","swap":"8Mi"}},{"name":"log","usage":{"cpu":"10m","memory":"16Mi","swap":"1Mi"}}]}`),
		},
		"west": {
			"/api/v1/nodes": node("node-w", `"swap":{"capacity":0}`),
			path + "/nodes": metrics("Node", `{"metadata":{"name":"node-w"},"usage":{"cpu":"500m","memory":"1Gi","swap":"0"}}`),
			path + "/namespaces/shop/pods": metrics("Pod", `{"metadata":{"name":"web-2","namespace":"shop"},"containers":[
				{"name":"web","usage":{"cpu":"120m","memory":"32Mi"}}]}`),
		},
		"north": {
			"/api/v1/nodes":                node("node-n", ``),
			path + "/nodes":                metrics("Node", `{"metadata":{"name":"node-n"},"usage":{"cpu":"750m","memory":"1Gi"}}`),
			path + "/namespaces/shop/pods": metrics("Pod", ``),
		},
	} {
		out[cluster+":"+path] = served
		for at, answer := range answers {
			out[cluster+":"+at] = answer
		}
	}
	return out
}

// TestTopShowsSwap: as kubectl has it, for many members.
func TestTopShowsSwap(t *testing.T) {
	cases := map[string]struct{ line, want string }{
		"nodes say how much they have, have none, or do not say": {"top nodes --show-swap -C east,north,west", `NAME     CLUSTER   CPU(cores)   CPU(%)   MEMORY(bytes)   MEMORY(%)   SWAP(bytes)   SWAP(%)
node-e   east      250m         25%      512Mi           25%         1024Mi        25%
node-n   north     750m         75%      1024Mi          50%         <unknown>     <unknown>
node-w   west      500m         50%      1024Mi          50%         0Mi           0%
`},
		"nodes by what they have in all": {"top nodes --show-swap --show-capacity -C east", `NAME     CLUSTER   CPU(cores)   CPU(%)   MEMORY(bytes)   MEMORY(%)   SWAP(bytes)   SWAP(%)
node-e   east      250m         12%      512Mi           12%         1024Mi        25%
`},
		"pods of all members": {"top pods -n shop --show-swap -C east,north,west", `NAME    CLUSTER   CPU(cores)   MEMORY(bytes)   SWAP(bytes)
web-1   east      110m         80Mi            9Mi
web-2   west      120m         32Mi            0Mi
`},
		"pods that are added up": {"top pods -n shop --show-swap --sum -C east,west", `NAME    CLUSTER   CPU(cores)   MEMORY(bytes)   SWAP(bytes)
web-1   east      110m         80Mi            9Mi
web-2   west      120m         32Mi            0Mi
                  ________     ________        ________
                  230m         112Mi           9Mi
`},
		"containers": {"top pods -n shop --show-swap --containers --no-headers -C east", `web-1   log   east   10m    16Mi   1Mi
web-1   web   east   100m   64Mi   8Mi
`},
		"nobody asked for it": {"top nodes -C east", `NAME     CLUSTER   CPU(cores)   CPU(%)   MEMORY(bytes)   MEMORY(%)
node-e   east      250m         25%      512Mi           25%
`},
	}
	address := stub(t, measured())
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := ask(t, address, tc.line)
			if diff := cmp.Diff(answer{Out: tc.want}, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
