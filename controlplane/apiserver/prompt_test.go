package apiserver

import (
	"context"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"
)

// TestPrompt: who looks at a kind whose cache is being filled is not sent away for a second;
// all other refusals are passed on as they are.
func TestPrompt(t *testing.T) {
	type outcome struct {
		Asked int
		Code  int
		Body  string
		After time.Duration
	}
	for name, tc := range map[string]struct {
		method  string
		refused string
		times   int // that it is refused; then it is not
		gone    bool
		want    outcome
	}{
		"there at once":                       {http.MethodGet, "", 0, false, outcome{1, http.StatusOK, "", 0}},
		"filled meanwhile":                    {http.MethodGet, "storage is (re)initializing", 3, false, outcome{4, http.StatusOK, "", 70 * time.Millisecond}},
		"not filled for long":                 {http.MethodGet, "storage is (re)initializing", 99, false, outcome{8, http.StatusTooManyRequests, "storage is (re)initializing", 1270 * time.Millisecond}},
		"it cannot be filled":                 {http.MethodGet, "storage is (re)initializing: etcd is down", 99, false, outcome{1, http.StatusTooManyRequests, "storage is (re)initializing: etcd is down", 0}},
		"too much is asked for":               {http.MethodGet, "too many requests", 99, false, outcome{1, http.StatusTooManyRequests, "too many requests", 0}},
		"a write is not sent twice":           {http.MethodPost, "storage is (re)initializing", 99, false, outcome{1, http.StatusTooManyRequests, "storage is (re)initializing", 0}},
		"who asked does not want it any more": {http.MethodGet, "storage is (re)initializing", 99, true, outcome{1, http.StatusTooManyRequests, "storage is (re)initializing", 0}},
	} {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakeClock(time.Unix(1e9, 0))
			began := clock.Now()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var got outcome
			p := prompt{clock: clock, next: loopback{http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if got.Asked++; got.Asked <= tc.times {
					w.WriteHeader(http.StatusTooManyRequests)
					_, _ = io.WriteString(w, tc.refused)
				}
			})}}
			req, err := http.NewRequestWithContext(ctx, tc.method, "https://hub/apis", http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan struct{})
			var resp *http.Response
			go func() {
				defer close(done)
				resp, err = p.RoundTrip(req)
			}()
			for pause := refill; ; {
				select {
				case <-done:
				default:
					if clock.HasWaiters() {
						if tc.gone {
							cancel()
							<-done
							continue
						}
						clock.Step(pause)
						pause *= 2
					}
					continue
				}
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Fatal(err)
			}
			got.Code, got.Body, got.After = resp.StatusCode, string(body), clock.Since(began)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("outcome (-want +got):\n%s", diff)
			}
		})
	}
}
