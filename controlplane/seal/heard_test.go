package seal_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/flotilla-io/flotilla/controlplane/etcd"
	"github.com/flotilla-io/flotilla/controlplane/seal"
)

// TestHeard writes to a store, again and again, while somebody listens.
func TestHeard(t *testing.T) {
	then, now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), time.Date(2034, 3, 1, 12, 0, 0, 0, time.UTC)
	leads, key := "/registry/leases/karmada-system/flotilla-controllers", filepath.Join(t.TempDir(), "seal.key")
	cases := map[string]struct {
		kept, written map[string][]byte // before, and while
		want          bool
	}{
		"nobody leads":                      {},
		"a Lease that nobody renews":        {kept: map[string][]byte{leads: lease(t, then)}},
		"a leader of the same time":         {written: map[string][]byte{leads: lease(t, now)}},
		"a leader of another time":          {written: map[string][]byte{leads: lease(t, then)}, want: true},
		"a Lease of somebody else":          {written: map[string][]byte{"/registry/leases/flotilla-cluster/east": lease(t, then)}},
		"a leader of another control plane": {written: map[string][]byte{"/other/leases/karmada-system/flotilla-controllers": lease(t, then)}},
		"what cannot be read, as it may be": {written: map[string][]byte{leads: []byte("k8s\x00?")}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			all := store(t)
			client := raw(t, all)
			put := func(files map[string][]byte) {
				for key, value := range files {
					if _, err := client.Put(t.Context(), key, string(value)); err != nil && t.Context().Err() == nil {
						t.Error(err)
					}
				}
			}
			put(tc.kept)
			listening := 300 * time.Millisecond
			if tc.want {
				listening = time.Minute // it ends as soon as something is heard
			}
			v, err := seal.New(seal.Options{Address: etcd.Address{Servers: all}, SealKeyFile: key, Listening: listening})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = v.Close() }()
			ctx, stop := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() {
				defer close(done)
				for ticker := time.NewTicker(20 * time.Millisecond); ; {
					select {
					case <-ctx.Done():
						return
					case <-ticker.C:
						put(tc.written)
					}
				}
			}()
			at, found, err := v.Heard(t.Context(), func(at time.Time) bool { return !at.Equal(now) })
			stop()
			<-done
			if err != nil || found != tc.want {
				t.Fatalf("heard: %v, %v", found, err)
			}
			if diff := cmp.Diff(then, at.UTC()); found && diff != "" {
				t.Errorf("time (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("it ends with its context", func(t *testing.T) {
		ended, stop := context.WithCancel(t.Context())
		stop()
		if _, _, err := vault(t, store(t), "", key).Heard(ended, func(time.Time) bool { return true }); err == nil {
			t.Error("no error")
		}
	})
}

// lease is one as the API server keeps it.
func lease(t *testing.T, at time.Time) []byte {
	t.Helper()
	codec := scheme.Codecs.EncoderForVersion(protobuf.NewSerializer(scheme.Scheme, scheme.Scheme), coordinationv1.SchemeGroupVersion)
	renewed := metav1.NewMicroTime(at)
	content, err := runtime.Encode(codec, &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{RenewTime: &renewed}})
	if err != nil {
		t.Fatal(err)
	}
	return content
}
