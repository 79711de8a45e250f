package proxy

import "sync"

// bufferSize is the size of the buffer of one copy, in bytes.
const bufferSize = 32 << 10

// buffers are shared by all answers. The zero value is ready.
type buffers struct{ pool sync.Pool }

// Get implements httputil.BufferPool.
func (b *buffers) Get() []byte {
	if kept, ok := b.pool.Get().(*[bufferSize]byte); ok {
		return kept[:]
	}
	return new([bufferSize]byte)[:]
}

// Put implements httputil.BufferPool.
func (b *buffers) Put(used []byte) {
	if cap(used) >= bufferSize {
		b.pool.Put((*[bufferSize]byte)(used[:bufferSize]))
	}
}
