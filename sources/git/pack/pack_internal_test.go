package pack

import (
	"bytes"
	"testing"
)

// FuzzPack passes arbitrary bytes to the reader of transfers.
func FuzzPack(f *testing.F) {
	f.Add([]byte("PACK\x00\x00\x00\x02\x00\x00\x00\x00"))
	f.Add([]byte("PACK\x00\x00\x00\x02\x00\x00\x00\x01\x35x\x9c\xcbH\xcd\xc9\xc9\x07\x00\x06,\x02\x15"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		p, err := Receive(bytes.NewReader(stream), t.TempDir(), Limits{Objects: 1000, Object: 1 << 16, Unpacked: 1 << 20})
		if err == nil {
			p.Close()
		}
	})
}

// FuzzOnto puts arbitrary bytes upon others, as from a cache that somebody has changed.
func FuzzOnto(f *testing.F) {
	empty := []byte("PACK\x00\x00\x00\x02\x00\x00\x00\x00")
	one := []byte("PACK\x00\x00\x00\x02\x00\x00\x00\x01\x35x\x9c\xcbH\xcd\xc9\xc9\x07\x00\x06,\x02\x15")
	f.Add(append(empty, make([]byte, 20)...), one)
	f.Add(append(one, make([]byte, 20)...), empty)
	f.Add([]byte("PACK\x00\x00\x00\x02\xff\xff\xff\xff12345678901234567890"), one)
	f.Fuzz(func(t *testing.T, there, stream []byte) {
		whole, err := Onto(bytes.NewReader(there), int64(len(there)), bytes.NewReader(stream))
		if err != nil {
			return
		}
		p, err := Receive(whole, t.TempDir(), Limits{Objects: 1000, Object: 1 << 16, Unpacked: 1 << 20})
		if err == nil {
			p.Close()
		}
	})
}
