package commandtest_test

import (
	"strings"
	"testing"

	k8srand "k8s.io/apimachinery/pkg/util/rand"

	"github.com/flotilla-io/flotilla/cmd/flotilla/commandtest"
)

func TestSteady(t *testing.T) {
	all := []commandtest.Changing{
		commandtest.UIDs, commandtest.Commits, commandtest.Times, commandtest.Ports, commandtest.Ages, commandtest.Pods("web"), commandtest.Requests(), commandtest.Created,
	}
	for in, want := range map[string]string{
		"Pod shop/web-5d8f7b9c4d-5mwr4 in east":                                                  "Pod shop/web-HASH in east",
		"Pod shop/web-5d8f7b9c4d-4s2m9 in east":                                                  "Pod shop/web-HASH in east",
		"Pod shop/web-5d8f7b9c4d-22s9x":                                                          "Pod shop/web-HASH",
		"web-9c4d-44444 web-9c4d7b web-5-22222":                                                  "web-HASH web-HASH web-HASH",
		"web-deployment, web-1, my-web-5d8f7b9c4d, web-5d8f7b9c4d.yaml":                          "web-deployment, web-1, my-web-5d8f7b9c4d, web-5d8f7b9c4d.yaml",
		"Applied revision: x (4 created: Namespace/shop, A/shop/b and 1 more)\ny (2 deleted: c)": "Applied revision: x\ny (2 deleted: c)",
		"5s 2m 2m5s 3h 3h5m 2d 2d3h 1y20d 250ms 1.5s":                                            "AGE AGE AGE AGE AGE AGE AGE AGE AGE AGE",
		"2m (x4 over 3h), 12s ago; since 5s.":                                                    "AGE (x4 over AGE), AGE ago; since AGE.",
		"5 2/2 v1.33.4 2x 5mm s m 5m5 5mwr4 x5s 1.5 5m-5s":                                       "5 2/2 v1.33.4 2x 5mm s m 5m5 5mwr4 x5s 1.5 5m-5s",
		"uid 0b9f2c4d-5e0f-1a2b-9f2c-4d1e0b7a6c5d, generation 1":                                 "uid UID, generation 1",
		"at 2026-01-02T03:04:05Z, 2026-01-02T03:04:05+02:00 and TIME":                            "at TIME, TIME and TIME",
		"main@sha1:" + strings.Repeat("4d", 20):                                                  "main@sha1:COMMIT",
		"main@sha1:4d1e0b7a and sha256:" + strings.Repeat("4d", 32):                              "main@sha1:SHORT and sha256:" + strings.Repeat("4d", 32),
		"http://127.0.0.1:43210/x [::1]:1 localhost:65535 127.0.0.11:80":                         "http://127.0.0.1:PORT/x [::1]:PORT localhost:PORT 127.0.0.11:80",
		`"north-2-vz9xk5mwr4b7c8d2" is forbidden; north-vz9xk5mwr4b7c8d22`:                       `"REQUEST" is forbidden; north-vz9xk5mwr4b7c8d22`,
	} {
		if got := commandtest.Steady(in, all...); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
	if got, want := commandtest.Steady("  NAME      AGE\n  east (x)  \"5\"   …  y\n│   └── z\n", commandtest.Columns), "  NAME  AGE\n  east (x)  \"5\"  …  y\n│   └── z\n"; got != want {
		t.Errorf("columns become %q, want %q", got, want)
	}
}

// TestSteadyInAnyOrder: whatever names Kubernetes makes up, and in whatever order the
// kinds are asked for, the same comes out.
func TestSteadyInAnyOrder(t *testing.T) {
	kinds := []commandtest.Changing{
		commandtest.Ages, commandtest.Pods("web"), commandtest.UIDs, commandtest.Commits, commandtest.Times, commandtest.Ports, commandtest.Requests(), commandtest.Columns,
	}
	for i := range 5000 {
		hash := k8srand.SafeEncodeString(strings.Repeat("9", i%9) + string(rune('0'+i%10)))
		pod := "web-" + hash + "-" + k8srand.String(5)
		line := "Pod shop/" + pod + "  5s  uid 0b9f2c4d-5e0f-1a2b-9f2c-4d1e0b7a6c5d  east-" + k8srand.String(16)
		const want = "Pod shop/web-HASH  AGE  uid UID  REQUEST"
		kinds = append(kinds[1:], kinds[0])
		if got := commandtest.Steady(line, kinds...); got != want {
			t.Fatalf("%q becomes %q, want %q", line, got, want)
		}
	}
}
