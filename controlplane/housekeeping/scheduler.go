package housekeeping

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/kubernetes/pkg/scheduler"
)

// RunScheduler runs Kubernetes' scheduler with its default profile until the context ends, which is a nil error.
// The configuration reaches the API server, which must answer already, with all rights; its client limits count.
func RunScheduler(ctx context.Context, cfg *rest.Config) error {
	cfg = rest.AddUserAgent(rest.CopyConfig(cfg), "kube-scheduler")
	dynamicClient, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("scheduler: %w", err)
	}
	typed := rest.CopyConfig(cfg)
	typed.DisableCompression = true
	typed.ContentType = "application/vnd.kubernetes.protobuf"
	typed.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	client, err := kubernetes.NewForConfig(typed)
	if err != nil {
		return fmt.Errorf("scheduler: %w", err)
	}

	informers := scheduler.NewInformerFactory(client, 0)
	others := dynamicinformer.NewFilteredDynamicSharedInformerFactory(dynamicClient, 0, metav1.NamespaceAll, nil)
	broadcaster := events.NewEventBroadcasterAdapterWithContext(ctx, client)
	defer broadcaster.Shutdown()
	recorder := func(name string) events.EventRecorderLogger { return broadcaster.NewRecorder(name) }
	sched, err := scheduler.New(ctx, client, informers, others, recorder, scheduler.WithKubeConfig(cfg))
	if err != nil {
		return fmt.Errorf("scheduler: %w", err)
	}

	broadcaster.StartRecordingToSink(ctx.Done())
	informers.Start(ctx.Done())
	others.Start(ctx.Done())
	informers.WaitForCacheSync(ctx.Done())
	others.WaitForCacheSync(ctx.Done())
	if err := sched.WaitForHandlersSync(ctx); err != nil {
		return nil // the context ended
	}
	sched.Run(ctx)
	return nil
}
