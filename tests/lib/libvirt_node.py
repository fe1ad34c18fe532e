# SPDX-License-Identifier: GPL-2.0-only
"""A host of libvirt's test driver, for tests, the bench and the demo of mgpu-poold."""
from xml.sax.saxutils import escape

FUNCTIONS = ((0, "0x030000"), (1, "0x040300"))      # of a GPU, and their classes


def _gpu(bus, model):
    members = "".join(f"<address domain='0x0000' bus='0x{bus:02x}' slot='0x00' function='0x{f}'/>"
                      for f, _ in FUNCTIONS)
    return "".join(
        f"<device><name>pci_0000_{bus:02x}_00_{f}</name><parent>computer</parent>"
        f"<capability type='pci'><class>{kind}</class><domain>0</domain><bus>{bus}</bus>"
        f"<slot>0</slot><function>{f}</function><product id='0x2684'>{escape(model)}</product>"
        f"<vendor id='0x10de'/><iommuGroup number='{bus}'>{members}</iommuGroup></capability>"
        "</device>" for f, kind in FUNCTIONS)


def node_xml(gpus, vms, number=0):
    """Describe a host with GPUs of two functions, and VMs that are off.

    @gpus: bus and model of each GPU
    @vms: names of the VMs
    @number: of the host, 0 to 65535: it makes UUIDs unique
    """
    domains = "".join(
        "<domain type='test' xmlns:test='http://libvirt.org/schemas/domain/test/1.0'>"
        f"<name>{escape(vm)}</name><uuid>6d677075-0000-4000-{number:04x}-{i:012x}</uuid>"
        "<memory>8388608</memory><vcpu>2</vcpu><os><type>hvm</type></os>"
        "<test:runstate>5</test:runstate></domain>" for i, vm in enumerate(vms))
    return ("<node><device><name>computer</name><capability type='system'><hardware>"
            f"<uuid>6d677075-0001-4000-{number:04x}-000000000000</uuid></hardware><firmware/>"
            f"</capability></device>{domains}{''.join(_gpu(*gpu) for gpu in gpus)}</node>")
