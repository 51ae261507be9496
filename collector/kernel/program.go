//go:build linux

package kernel

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/ringbuf"
	"github.com/cilium/ebpf/rlimit"

	"github.com/trimtab/trimtab"
)

const (
	// ringBytes is the size of the event buffer: 58,000 events fit while this process does not run.
	ringBytes = 4 << 20
	// maxProcesses bounds the processes that are watched.
	maxProcesses = 4096
	tcp          = 6
)

// probe is the kernel's side: it writes events of watched processes to a ring.
type probe struct {
	watched, ring, lost *ebpf.Map
	programs            []*ebpf.Program
	links               []link.Link
	reader              *ringbuf.Reader
}

// attach puts the programs to their tracepoints. Its error is
// trimtab.ErrUnsupported where this kernel, or this process's rights, do not do.
func attach() (*probe, error) {
	at, err := offsets()
	if err != nil {
		return nil, fmt.Errorf("trace sockets: %w", errors.Join(trimtab.ErrUnsupported, err))
	}
	_ = rlimit.RemoveMemlock() // kernels since 5.11 need no limit; older ones report an error below
	p := &probe{}
	if err := p.load(at); err != nil {
		return nil, fmt.Errorf("trace sockets: %w", errors.Join(trimtab.ErrUnsupported, err, p.close()))
	}
	return p, nil
}

func (p *probe) load(at *layout) (err error) {
	for _, m := range []struct {
		to   **ebpf.Map
		spec ebpf.MapSpec
	}{
		{&p.watched, ebpf.MapSpec{Name: "watched", Type: ebpf.Hash, KeySize: 4, ValueSize: 4, MaxEntries: maxProcesses}},
		{&p.ring, ebpf.MapSpec{Name: "events", Type: ebpf.RingBuf, MaxEntries: ringBytes}},
		{&p.lost, ebpf.MapSpec{Name: "lost", Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 1}},
	} {
		if *m.to, err = ebpf.NewMap(&m.spec); err != nil {
			return fmt.Errorf("make map %s: %w", m.spec.Name, err)
		}
	}
	for _, point := range []struct {
		name string
		sent int32
	}{{"sock_send_length", 1}, {"sock_recv_length", 0}} {
		program, err := ebpf.NewProgram(&ebpf.ProgramSpec{
			Name: point.name, Type: ebpf.RawTracepoint, License: "Dual MIT/GPL",
			Instructions: p.instructions(at, point.sent),
		})
		if err != nil {
			return fmt.Errorf("load program of %s: %w", point.name, err)
		}
		p.programs = append(p.programs, program)
		l, err := link.AttachRawTracepoint(link.RawTracepointOptions{Name: point.name, Program: program})
		if err != nil {
			return fmt.Errorf("attach to tracepoint %s, which Linux has since 6.3: %w", point.name, err)
		}
		p.links = append(p.links, l)
	}
	p.reader, err = ringbuf.NewReader(p.ring)
	return err
}

// close removes everything from the kernel.
func (p *probe) close() (err error) {
	if p.reader != nil {
		err = p.reader.Close()
	}
	for _, l := range p.links {
		err = errors.Join(err, l.Close())
	}
	for _, program := range p.programs {
		err = errors.Join(err, program.Close())
	}
	for _, m := range []*ebpf.Map{p.watched, p.ring, p.lost} {
		if m != nil {
			err = errors.Join(err, m.Close())
		}
	}
	return err
}

// dropped returns how many events did not fit into the ring buffer.
func (p *probe) dropped() (n uint64, err error) {
	if err := p.lost.Lookup(uint32(0), &n); err != nil {
		return 0, fmt.Errorf("read lost events: %w", err)
	}
	return n, nil
}

// layout has the offsets of the fields of the kernel's struct sock, in bytes.
type layout struct {
	family, localPort, remotePort, local4, remote4, local6, remote6, net, protocol int32
}

// offsets reads the layout from the kernel's type information.
func offsets() (*layout, error) {
	spec, err := btf.LoadKernelSpec()
	if err != nil {
		return nil, fmt.Errorf("read types of the kernel (CONFIG_DEBUG_INFO_BTF): %w", err)
	}
	var common, sock *btf.Struct
	if err := errors.Join(spec.TypeByName("sock_common", &common), spec.TypeByName("sock", &sock)); err != nil {
		return nil, err
	}
	at := &layout{}
	for _, f := range []struct {
		of   *btf.Struct
		name string
		to   *int32
	}{
		{common, "skc_family", &at.family}, {common, "skc_num", &at.localPort}, {common, "skc_dport", &at.remotePort},
		{common, "skc_rcv_saddr", &at.local4}, {common, "skc_daddr", &at.remote4},
		{common, "skc_v6_rcv_saddr", &at.local6}, {common, "skc_v6_daddr", &at.remote6},
		{common, "skc_net", &at.net}, {sock, "sk_protocol", &at.protocol},
	} {
		offset, ok := offsetOf(f.of.Members, f.name)
		if !ok {
			return nil, fmt.Errorf("struct %s of this kernel has no %s", f.of.Name, f.name)
		}
		*f.to = int32(offset)
	}
	return at, nil
}

// offsetOf finds a member, also within nameless structs and unions.
func offsetOf(members []btf.Member, name string) (uint32, bool) {
	for _, m := range members {
		if m.Name == name {
			return m.Offset.Bytes(), true
		}
		if m.Name != "" {
			continue
		}
		var inner []btf.Member
		switch t := m.Type.(type) {
		case *btf.Struct:
			inner = t.Members
		case *btf.Union:
			inner = t.Members
		}
		if offset, ok := offsetOf(inner, name); ok {
			return m.Offset.Bytes() + offset, true
		}
	}
	return 0, false
}

// instructions returns the program for one tracepoint, whose arguments are the socket, the number
// of bytes or an error, and flags. It builds the event on the stack.
func (p *probe) instructions(at *layout, sent int32) asm.Instructions {
	const event, scratch = -eventBytes, -eventBytes - 8
	read := func(to int32, bytes int32, from int32) asm.Instructions {
		return asm.Instructions{
			asm.Mov.Reg(asm.R1, asm.RFP), asm.Add.Imm(asm.R1, to),
			asm.Mov.Imm(asm.R2, bytes),
			asm.Mov.Reg(asm.R3, asm.R7), asm.Add.Imm(asm.R3, from),
			asm.FnProbeReadKernel.Call(),
		}
	}
	code := asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1),
		asm.LoadMem(asm.R7, asm.R6, 0, asm.DWord),
		asm.LoadMem(asm.R8, asm.R6, 8, asm.DWord),
		asm.LSh.Imm(asm.R8, 32), asm.ArSh.Imm(asm.R8, 32),
		asm.JSLE.Imm(asm.R8, 0, "exit"),
		asm.FnGetCurrentPidTgid.Call(),
		asm.Mov.Reg(asm.R9, asm.R0),
		asm.RSh.Imm(asm.R0, 32),
		asm.StoreMem(asm.RFP, scratch, asm.R0, asm.Word),
		asm.LoadMapPtr(asm.R1, p.watched.FD()),
		asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, scratch),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "exit"),
	}
	code = append(code, asm.Mov.Imm(asm.R1, 0))
	for i := int16(scratch); i < 0; i += 8 {
		code = append(code, asm.StoreMem(asm.RFP, i, asm.R1, asm.DWord))
	}
	code = append(code, read(scratch, 2, at.protocol)...)
	code = append(code,
		asm.LoadMem(asm.R1, asm.RFP, scratch, asm.Half),
		asm.JNE.Imm(asm.R1, tcp, "exit"),
		asm.FnKtimeGetNs.Call(),
		asm.StoreMem(asm.RFP, event, asm.R0, asm.DWord),
		asm.StoreMem(asm.RFP, event+8, asm.R9, asm.DWord),
		asm.StoreMem(asm.RFP, event+16, asm.R8, asm.Word),
		asm.StoreImm(asm.RFP, event+20, int64(sent), asm.Half),
	)
	code = append(code, read(event+22, 2, at.family)...)
	code = append(code, read(event+24, 2, at.localPort)...)
	code = append(code, read(event+26, 2, at.remotePort)...)
	code = append(code, read(event+64, 8, at.net)...)
	code = append(code,
		asm.LoadMem(asm.R1, asm.RFP, event+22, asm.Half),
		asm.JEq.Imm(asm.R1, inet6, "six"),
		asm.JNE.Imm(asm.R1, inet4, "exit"),
	)
	code = append(code, read(event+32, 4, at.local4)...)
	code = append(code, read(event+48, 4, at.remote4)...)
	code = append(code, asm.Ja.Label("send"))
	six := read(event+32, 16, at.local6)
	six[0] = six[0].WithSymbol("six")
	code = append(code, six...)
	code = append(code, read(event+48, 16, at.remote6)...)
	return append(code, p.send(event, scratch)...)
}

// send hands the event on the stack to the ring, or counts it as lost where the
// ring is full.
func (p *probe) send(event, scratch int16) asm.Instructions {
	return asm.Instructions{
		asm.LoadMapPtr(asm.R1, p.ring.FD()).WithSymbol("send"),
		asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, int32(event)),
		asm.Mov.Imm(asm.R3, eventBytes),
		asm.Mov.Imm(asm.R4, 0),
		asm.FnRingbufOutput.Call(),
		asm.JEq.Imm(asm.R0, 0, "exit"),
		asm.StoreImm(asm.RFP, scratch, 0, asm.Word),
		asm.LoadMapPtr(asm.R1, p.lost.FD()),
		asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, int32(scratch)),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "exit"),
		asm.Mov.Imm(asm.R1, 1),
		asm.StoreXAdd(asm.R0, asm.R1, asm.DWord),
		asm.Mov.Imm(asm.R0, 0).WithSymbol("exit"),
		asm.Return(),
	}
}
