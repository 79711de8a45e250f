package hub

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
)

// TestHowInformersWatch checks that what cannot be watched in process is watched by requests.
func TestHowInformersWatch(t *testing.T) {
	for name, c := range map[string]struct {
		fault error
		want  []string
	}{
		"a kind that is watched in process": {nil, []string{"in process"}},
		"any other":                         {errors.New("not this one"), []string{"in process", "request"}},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			var asked []string
			watches := func(by string, err error) toolscache.WatchFuncWithContext {
				return func(context.Context, metav1.ListOptions) (watch.Interface, error) {
					asked = append(asked, by)
					if err == nil {
						stop()
					}
					return watch.NewFake(), err
				}
			}
			requests := &toolscache.ListWatch{
				ListWithContextFunc:  func(context.Context, metav1.ListOptions) (runtime.Object, error) { return &corev1.PodList{}, nil },
				WatchFuncWithContext: watches("request", nil),
			}
			inProcess := func(ctx context.Context, _ runtime.Object, options metav1.ListOptions) (watch.Interface, error) {
				return watches("in process", c.fault)(ctx, options)
			}
			informers(inProcess)(requests, &corev1.Pod{}, 0, toolscache.Indexers{}).RunWithContext(ctx)
			if diff := cmp.Diff(c.want, asked); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
		})
	}
	if informers(nil) != nil {
		t.Error("without a watch in process, informers are not the ordinary ones")
	}
}
