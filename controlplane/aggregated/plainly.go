package aggregated

import (
	"bytes"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// plainly decodes JSON of the kinds that loops write without reading the kind first, which
// saves two of five passes over the data. That works because these kinds are stored in the
// server's internal version. The result is the same as that of other, which decodes
// everything else.
type plainly struct {
	other runtime.Decoder
	kinds []plain
}

// plain describes one kind to plainly.
type plain struct {
	heads [][]byte // how the JSON may begin: of an encoded object, and of a patched one
	kind  schema.GroupVersionKind
	empty func() runtime.Object
}

func newPlainly(other runtime.Decoder) plainly {
	of := func(gv schema.GroupVersion, name string, empty func() runtime.Object) plain {
		kind, version := `"kind":"`+name+`",`, `"apiVersion":"`+gv.String()+`",`
		return plain{[][]byte{[]byte("{" + kind + version), []byte("{" + version + kind)}, gv.WithKind(name), empty}
	}
	return plainly{other, []plain{
		of(workv1alpha1.GroupVersion, "Work", func() runtime.Object { return &workv1alpha1.Work{} }),
		of(workv1alpha2.GroupVersion, "ResourceBinding", func() runtime.Object { return &workv1alpha2.ResourceBinding{} }),
		of(workv1alpha2.GroupVersion, "ClusterResourceBinding", func() runtime.Object { return &workv1alpha2.ClusterResourceBinding{} }),
	}}
}

// Decode reads an object, into one that is given or a new one.
func (p plainly) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	for i := range p.kinds {
		if obj := p.kinds[i].read(data, into); obj != nil {
			kind := p.kinds[i].kind
			return obj, &kind, nil
		}
	}
	return p.other.Decode(data, defaults, into)
}

// read decodes an object of the kind. It returns nil if data does not begin as such an object
// does, or cannot be decoded as one.
func (p *plain) read(data []byte, into runtime.Object) runtime.Object {
	if !bytes.HasPrefix(data, p.heads[0]) && !bytes.HasPrefix(data, p.heads[1]) {
		return nil
	}
	obj := into
	if obj == nil {
		obj = p.empty()
	} else if reflect.TypeOf(into) != reflect.TypeOf(p.empty()) {
		return nil
	}
	if err := json.Unmarshal(data, obj); err != nil || obj.GetObjectKind().GroupVersionKind() != p.kind {
		return nil
	}
	if into == nil { // objects in the internal version have no kind set
		obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	}
	return obj
}

// withoutProtobuf offers all media types but protobuf, for which these types have no code.
type withoutProtobuf struct{ runtime.NegotiatedSerializer }

// SupportedMediaTypes returns those of the wrapped serializer without protobuf.
func (s withoutProtobuf) SupportedMediaTypes() []runtime.SerializerInfo {
	return slices.DeleteFunc(slices.Clone(s.NegotiatedSerializer.SupportedMediaTypes()), func(info runtime.SerializerInfo) bool {
		return info.MediaType == runtime.ContentTypeProtobuf
	})
}

// DecoderToVersion returns a decoder for requests. It does not use plainly for requests that
// ask for errors about unknown fields, or that are not JSON.
func (s withoutProtobuf) DecoderToVersion(serializer runtime.Decoder, version runtime.GroupVersioner) runtime.Decoder {
	decoder := s.NegotiatedSerializer.DecoderToVersion(serializer, version)
	for _, info := range s.NegotiatedSerializer.SupportedMediaTypes() {
		if info.MediaType == runtime.ContentTypeJSON && info.Serializer == serializer {
			return newPlainly(decoder)
		}
	}
	return decoder
}
