package loop

import "k8s.io/apimachinery/pkg/runtime"

// Recorder takes Events about objects, and returns at once. It is the part of client-go's
// record.EventRecorder that loops use.
type Recorder interface {
	Event(obj runtime.Object, eventType, reason, message string)
}
